"""SHOW FUNCTIONS and DESCRIBE FUNCTION."""

from __future__ import annotations

from potok.sql.errors import SourceLocation, UnknownName, closest
from potok.sql.functions.function import AggregateFunction, SqlFunction, TableFunction
from potok.sql.functions.registry import all_functions, function_named, users_functions
from potok.sql.functions.result_types import result_of
from potok.statements.inspect.listing import listed, texts
from potok.statements.results import Rows


def show_functions() -> Rows:
    known = {**all_functions(), **users_functions()}
    rows = [(name, kind_of(known[name]), known[name].family, known[name].summary) for name in sorted(known)]
    return listed("functions", texts("Function Name", "Type", "Category", "Summary"), rows)


def describe_function(name: str, location: SourceLocation) -> Rows:
    """Show the signatures of a function and its description."""
    function = function_named(name)
    if function is None:
        hint = closest(name, {**all_functions(), **users_functions()}) or "SHOW FUNCTIONS lists them"
        raise UnknownName(f"there is no function {name}", hint=hint, location=location)
    details = [
        ("Name", function.name),
        ("Type", kind_of(function)),
        ("Category", function.family),
        ("Overview", function.summary),
        ("Example", function.example),
        ("Defined by", "the user" if name in users_functions() else "Potok"),
    ]
    rows = [(overload.signature, result_of(function, overload)) for overload in function.overloads]
    return listed("function", texts("Variation", "Returns"), rows, details)


def kind_of(function: SqlFunction) -> str:
    if isinstance(function, AggregateFunction):
        return "AGGREGATE"
    return "TABLE" if isinstance(function, TableFunction) else "SCALAR"
