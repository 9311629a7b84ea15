"""Whatever is written is either refused with a place, or computed: nothing else comes out."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import given, note, settings
from hypothesis import strategies as st

from potok.sql.errors import SqlError
from potok.sql.expressions.check import check
from potok.sql.expressions.compute import compute
from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import Context
from potok.sql.syntax.parse import parse_expression
from sql.columns import Columns, read, type_of

COLUMNS: list[tuple[str, str, list[Any]]] = [
    ("I", "INT", [-(2**31), 0, {"null": True}]),
    ("B", "BIGINT", [2**63 - 1, -1, {"null": True}]),
    ("D", "DOUBLE", ["nan", "-inf", {"null": True}]),
    ("M", "DECIMAL(38, 10)", ["9999999999999999999999999999.9999999999", "0", {"null": True}]),
    ("N", "DECIMAL(3, 3)", ["-0.999", "0.001", {"null": True}]),
    ("T", "VARCHAR", ["", "12", {"null": True}]),
    ("C", "BOOLEAN", [True, False, {"null": True}]),
    ("Y", "BYTES", ["aGk=", "", {"null": True}]),
    ("DAY", "DATE", ["1600-01-01", "2020-02-29", {"null": True}]),
    ("H", "TIME", ["00:00", "23:59:59.999", {"null": True}]),
    ("AT", "TIMESTAMP", ["1600-01-01T00:00:00.001", "2020-02-29T00:00:00", {"null": True}]),
    ("A", "ARRAY<INT>", [[], [1, {"null": True}], {"null": True}]),
    ("L", "ARRAY<ARRAY<VARCHAR>>", [[[], ["x"]], [{"null": True}], {"null": True}]),
    ("P", "MAP<VARCHAR, DOUBLE>", [[], [["x", {"null": True}], ["y", 1.5]], {"null": True}]),
    (
        "S",
        "STRUCT<F INT, G STRUCT<A DATE>>",
        [{"F": 1, "G": {"null": True}}, {"F": {"null": True}, "G": {"A": "2020-01-01"}}, {"null": True}],
    ),
]
TYPES = {name: type_of(written) for name, written, _ in COLUMNS}
VALUES = {name: pa.array([read(v, TYPES[name]) for v in values], TYPES[name]) for name, _, values in COLUMNS}

LITERALS = ("NULL", "1", "0", "-1", "3000000000", "1.50", "0.0", "1e300", "''", "'x'", "'12'", "'2020-01-01'", "TRUE")
TARGETS = (
    "INT", "BIGINT", "DOUBLE", "DECIMAL(3, 1)", "DECIMAL(38, 0)", "VARCHAR", "BOOLEAN", "BYTES", "DATE", "TIME",
    "TIMESTAMP", "ARRAY<VARCHAR>", "ARRAY<BIGINT>", "MAP<VARCHAR, INT>", "STRUCT<F VARCHAR, G STRUCT<B INT>>",
)  # fmt: skip
INFIX = ("+", "-", "*", "/", "%", "=", "<>", "<", ">=", "AND", "OR", "LIKE", "IS DISTINCT FROM")
SHAPES = (
    *(f"(? {op} ?)" for op in INFIX),
    *(f"CAST(? AS {target})" for target in TARGETS),
    "(? BETWEEN ? AND ?)",
    "(? NOT IN (?, ?))",
    "CASE WHEN ? THEN ? ELSE ? END",
    "CASE ? WHEN ? THEN ? END",
    "NOT ?",
    "- ?",
    "(? IS NULL)",
    "ARRAY[?, ?]",
    "MAP(? := ?, ? := ?)",
    "STRUCT(F := ?, G := ?)",
    "(?)[?]",
    "(?)->F",
    "(?)->G",
    "TRANSFORM(?, X => ?)",
    "TRANSFORM(?, X => X + ?)",
    "FILTER(?, X => X = ?)",
    "REDUCE(?, ?, (X, Z) => ?)",
    "COALESCE(?, ?)",
)


def written(random: Random, depth: int) -> str:
    """An expression at random."""
    if depth == 0 or random.random() < 0.15:
        return random.choice([*TYPES, *LITERALS])
    shape = random.choice(SHAPES)
    return "".join(written(random, depth - 1) if char == "?" else char for char in shape)


def outcome(sql: str) -> SqlError | tuple[Typed, pa.Array, Context]:
    try:
        expression = check(parse_expression(sql), Columns(TYPES))
    except SqlError as error:
        return error
    context = Context()
    return expression, compute(expression, VALUES, 3, context), context


@settings(max_examples=300)
@given(random=st.randoms(use_true_random=True), depth=st.integers(1, 3))
def test_every_expression_is_refused_with_a_position_or_computed(random: Random, depth: int) -> None:
    sql = written(random, depth)
    note(sql)
    found = outcome(sql)
    if isinstance(found, SqlError):
        assert found.location is not None
        return
    expression, values, context = found
    values.validate(full=True)
    assert values.type == expression.type
    assert len(values) == 3
    assert set(context.failures) <= {0, 1, 2}
    assert str(expression)
