"""Traced lambdas: a function of records as an expression tree, evaluated by Arrow compute with results equal to
Python's.
"""

from potok.expressions.evaluate import Evaluated, evaluate
from potok.expressions.expr import ALL, Expr, TupleExpr, fields
from potok.expressions.function import Function, WrongArity
from potok.expressions.row import evaluate_row
from potok.expressions.tracing.aggregate import ABSENT, AggregateTerm, TracedAggregate, trace_aggregate, trace_reduce
from potok.expressions.tracing.refusal import InvertedBool, UnknownField
from potok.expressions.tracing.trace import Argument, Traced, Untraceable, record_arguments, trace
from potok.expressions.truth import truthy

__all__ = [
    "ABSENT",
    "ALL",
    "AggregateTerm",
    "Argument",
    "Evaluated",
    "Expr",
    "Function",
    "InvertedBool",
    "Traced",
    "TracedAggregate",
    "TupleExpr",
    "UnknownField",
    "Untraceable",
    "WrongArity",
    "evaluate",
    "evaluate_row",
    "fields",
    "record_arguments",
    "trace",
    "trace_aggregate",
    "trace_reduce",
    "truthy",
]
