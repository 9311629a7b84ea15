"""Random statements, as parsed: whatever the grammar can say."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from potok.sql.errors import SourceLocation
from potok.sql.syntax import ast
from potok.sql.syntax.lexer.words import QUOTED_TO_BE_SURE, STATEMENTS
from potok.sql.syntax.statements import EXTENDABLE, SHOWN

AT = SourceLocation(1, 1)
SOME = {"min_size": 1, "max_size": 3}

plain = st.sampled_from(
    ("A", "B", "AMOUNT", "ID", "_X1", "DATE", "MINUTES", "lower", "two words", "tick`s", "é", "${x}")
)
names = plain | st.sampled_from(sorted(QUOTED_TO_BE_SURE | set(STATEMENTS))) | st.text(min_size=1, max_size=4)
calls = st.sampled_from(("COUNT", "CONCAT", "F", "CAST", "ARRAY", "IF", "DATE"))
texts = st.sampled_from(("", "x", "it's", "${x}", "$${", "--", "/*", ";", "%_")) | st.text(max_size=5)
counts = st.integers(0, 2**63 - 1)
decimals = st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9)
constants = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    decimals | st.sampled_from((Decimal("1"), Decimal("-0.50"))),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
flags = st.booleans()
none = st.none()


def node(kind, *parts, **named):
    return st.builds(kind, *parts, at=st.just(AT), **named)


def many(strategy, least=1):
    return st.lists(strategy, min_size=least, max_size=3).map(tuple)


types = st.recursive(
    node(ast.TypeName, names) | node(ast.TypeName, st.just("DECIMAL"), numbers=many(counts)),
    lambda inner: st.one_of(
        node(ast.TypeName, st.just("ARRAY"), st.tuples(inner)),
        node(ast.TypeName, st.just("MAP"), st.tuples(inner, inner)),
        node(ast.TypeName, st.just("STRUCT"), fields=many(st.tuples(names, inner), 0)),
    ),
    max_leaves=4,
)


def _unique(strategy):
    return st.lists(strategy, min_size=1, max_size=3, unique_by=lambda pair: pair[0]).map(tuple)


def _larger(inner):
    binary = ("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "AND", "OR")
    binary += ("IS DISTINCT FROM", "IS NOT DISTINCT FROM")
    lambdas = node(ast.Lambda, st.lists(names, min_size=1, max_size=2, unique=True).map(tuple), inner)
    return st.one_of(
        node(ast.Binary, st.sampled_from(binary), inner, inner),
        node(ast.Unary, st.sampled_from(("-", "+", "NOT")), inner),
        node(ast.IsNull, inner, flags),
        node(ast.Between, inner, inner, inner, flags),
        node(ast.In, inner, many(inner), flags),
        node(ast.Like, inner, inner, st.sampled_from(("", "!", "'", "\\")), flags),
        node(ast.Case, none | inner, many(st.tuples(inner, inner)), none | inner),
        node(ast.Cast, inner, types),
        node(ast.Subscript, inner, inner),
        node(ast.FieldOf, inner, names),
        node(ast.ArrayOf, many(inner, 0)),
        node(ast.MapOf, many(st.tuples(inner, inner), 0)),
        node(ast.StructOf, _unique(st.tuples(names, inner))),
        node(ast.Call, calls, many(inner | lambdas, 0)),
    )


expressions = st.recursive(
    st.one_of(
        node(ast.Name, names, st.just("") | names),
        node(ast.Literal, constants),
        node(ast.Call, calls, st.tuples(node(ast.AnyRow))),
    ),
    _larger,
    max_leaves=8,
)

properties = st.lists(
    node(
        ast.Property,
        st.sampled_from(("KAFKA_TOPIC", "PARTITIONS", "A.B", "TABLE")),
        constants,
        value_at=st.just(AT),
    ),
    max_size=3,
    unique_by=lambda given: given.name,
).map(tuple)

relations = node(ast.Relation, names, st.just("") | names, none | expressions)
durations = st.integers(0, 10**12)
positive = st.integers(1, 10**12)
joins = node(
    ast.Join,
    st.sampled_from(ast.JoinKind),
    relations,
    expressions,
    none | node(ast.Within, durations, durations, none | durations),
)
windows = node(
    ast.WindowClause, st.sampled_from(("TUMBLING", "SESSION")), positive, none, none | positive, none | durations
) | node(ast.WindowClause, st.just("HOPPING"), positive, positive, none | positive, none | durations)
items = st.one_of(
    node(ast.SelectItem, expressions, st.just("") | names),
    node(ast.Everything, st.just("") | names),
    node(ast.EveryField, expressions),
)
queries = node(
    ast.Select,
    many(items),
    relations,
    many(joins, 0),
    none | windows,
    none | expressions,
    many(expressions, 0),
    many(expressions, 0),
    none | expressions,
    many(node(ast.OrderItem, expressions, flags, none | flags), 0),
    none | counts,
    none | st.sampled_from(ast.Emit),
)

columns = node(ast.ColumnDefinition, names, types, st.sampled_from(("", "KEY", "PRIMARY KEY", "HEADERS"))) | node(
    ast.ColumnDefinition, names, types, st.just("HEADER"), texts
)
topics = texts.filter(bool)
variables = st.sampled_from(("x", "Topic", "_a1"))

simple = st.one_of(
    node(ast.CreateType, names, types, flags),
    node(ast.AlterSource, flags, names, many(node(ast.ColumnDefinition, names, types))),
    node(ast.Drop, st.sampled_from(("STREAM", "TABLE")), names, flags, flags),
    node(ast.Drop, st.just("TYPE"), names, flags),
    node(ast.Show, st.sampled_from(SHOWN) | st.just("ALL TOPICS")),
    node(ast.Show, st.sampled_from(EXTENDABLE) | st.just("ALL TOPICS"), st.just(True)),
    node(ast.Describe, names, st.just(""), flags),
    node(ast.Describe, calls, st.just("FUNCTION")),
    node(ast.Describe, st.just(""), st.sampled_from(("STREAMS", "TABLES")), flags),
    node(ast.Print, topics, flags, none | counts, none | counts),
    node(ast.Steer, st.sampled_from(("TERMINATE", "PAUSE", "RESUME")), names),
    node(ast.SetProperty, texts, none | texts),
    node(ast.Define, variables, none | texts),
    node(ast.RunScript, texts),
    node(ast.AssertTopic, topics, properties, none | durations, flags),
)
rows = st.lists(st.tuples(names, expressions), min_size=1, max_size=3)
statements = st.one_of(
    simple,
    node(ast.Query, queries),
    node(ast.CreateSource, flags, names, many(columns), properties, flags, flags, flags),
    node(ast.CreateSource, flags, names, st.just(()), properties.filter(bool), flags, flags, flags),
    node(ast.CreateAs, flags, names, queries, properties, flags, flags),
    node(ast.InsertSelect, names, queries, properties),
    node(ast.InsertValues, names, st.just(()), many(expressions)),
    rows.map(lambda row: ast.InsertValues("T", tuple(n for n, _ in row), tuple(e for _, e in row), at=AT)),
    node(ast.Explain, simple),
    node(ast.Explain, none, names),
)
