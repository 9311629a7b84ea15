"""Whatever a function of SQL is called with: refused with a place, NULL with a reason, or a value of its type."""

from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from tests import hostile

from potok.errors import PotokError
from potok.sql.budget import until
from potok.sql.errors import SqlError
from potok.sql.expressions.check import check
from potok.sql.expressions.compute import compute
from potok.sql.functions.function import Context
from potok.sql.functions.registry import all_functions
from potok.sql.syntax.parse import parse_expression
from sql.columns import Columns, type_of

WHOLE, LEAST = Decimal("-" + "9" * 28 + "." + "9" * 10), Decimal("-0." + "9" * 38)
INSTANTS = [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_000), dt.datetime(1969, 12, 31), None]
TEXTS: list[str | None] = [
    *(
        "",
        " ",
        "\0",
        "é😀",
        "a" * 70_000,
        "9" * 400,
        "-9223372036854775809",
        "1e999999",
        "NaN",
        "-Infinity",
        "0x1",
        "١",
    ),
    *("%", "\\", "%zz", "[", "(a+)+$", "(" * 3_000, "*", "\\E", "(?<x>", "{0}", "$1", "\ud7ff", "true", "null"),
    *("{", "[" * 3_000, '{"a":' * 2_000, '{"a":1e400,"b":"\\ud800"}', "$", "$.a", "$[99999999999999999999]", "$..*"),
    *(
        "yyyy-MM-dd",
        "GGGG",
        "'",
        "[[yyyy]]",
        "99999999-99-99",
        "+999999999-12-31",
        "24:00:00",
        "2020-02-30",
        "Z",
        "UTC",
    ),
    *(
        "America/Nowhere",
        "+99:99",
        "http://[::1",
        "http://h:99999/?a=%ff#%",
        "//",
        "utf8",
        "base64",
        "hex",
        "MD5",
        None,
    ),
]
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "I": ("INT", [0, 1, -1, 2**31 - 1, -(2**31), None]),
    "B": ("BIGINT", [0, 1, -1, 2**63 - 1, -(2**63), 253_402_300_800_000, None]),
    "D": ("DOUBLE", [0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, -1e19, None]),
    "M": ("DECIMAL(38, 10)", [Decimal(0), WHOLE, WHOLE.copy_negate(), Decimal("1E-10"), None]),
    "N": ("DECIMAL(38, 38)", [Decimal(0), Decimal("1E-38"), LEAST, None]),
    "T": ("VARCHAR", TEXTS),
    "U": ("VARCHAR", TEXTS[::-1]),
    "C": ("BOOLEAN", [True, False, None]),
    "Y": ("BYTES", [b"", b"\0", b"\xff" * 9, b"\xed\xa0\x80", b"\0" * 70_000, None]),
    "DAY": ("DATE", [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 10), None]),
    "H": ("TIME", [dt.time(0), dt.time(23, 59, 59, 999_000), None]),
    "AT": ("TIMESTAMP", INSTANTS),
    "A": ("ARRAY<INT>", [[], [None], [2**31 - 1] * 3, [-(2**31), None, 0], None]),
    "E": ("ARRAY<DOUBLE>", [[], [float("nan"), None, -0.0, float("inf")], None]),
    "V": ("ARRAY<VARCHAR>", [[], ["", None, "a" * 5_000], ["9" * 400], None]),
    "L": ("ARRAY<ARRAY<VARCHAR>>", [[], [None], [[], [None], ["x"]], None]),
    "P": ("MAP<VARCHAR, DOUBLE>", [[], [("", None), ("a", float("nan"))], None]),
    "Q": ("MAP<VARCHAR, ARRAY<INT>>", [[], [("k", [None])], [("k", None)], None]),
    "S": ("STRUCT<F INT, G ARRAY<DATE>>", [{"F": None, "G": None}, {"F": 1, "G": [None]}, None]),
}
TYPES = {name: type_of(written) for name, (written, _) in COLUMNS.items()}
ROWS = max(len(values) for _, values in COLUMNS.values())
LITERALS = ("NULL", "0", "-1", "2147483647", "9223372036854775807", "1e308", "0.5", "''", "'x'", "'%'", "'['", "'$.a'")
UNITS = ("DAYS", "MILLISECONDS", "YEARS")
LAMBDAS = ("X => X", "X => NULL", "(X, Z) => X", "(X, Z) => Z", "(X, Z, W) => W", "X => X + 2147483647", "X => X / 0")
SCALARS = sorted(name for name, found in all_functions().items() if type(found).__name__ != "AggregateFunction")


def columns(random: Random) -> dict[str, pa.Array]:
    """Each column goes through its values from another place on, so that all meet."""
    found = {}
    for name, (_, values) in COLUMNS.items():
        start = random.randrange(len(values))
        rows = [values[(start + row) % len(values)] for row in range(ROWS)]
        zoned = TYPES[name] == TYPES["AT"] and TYPES[name].tz is not None
        found[name] = pa.array(
            [row.replace(tzinfo=dt.UTC) if zoned and row is not None else row for row in rows], TYPES[name]
        )
    return found


def argument(random: Random) -> str:
    kinds = [list(COLUMNS), list(LITERALS), list(LAMBDAS), list(UNITS)]
    return random.choice(random.choices(kinds, [12, 4, 2, 1])[0])


@pytest.mark.parametrize("name", SCALARS)
@hostile.explored(5)
@given(random=st.randoms(use_true_random=False))
def test_no_argument_makes_a_function_raise(name: str, random: Random) -> None:
    values = columns(random)
    for _ in range(20):
        written = f"{name}({', '.join(argument(random) for _ in range(random.choice([1, 1, 2, 2, 2, 3, 3, 4])))})"
        note(written)
        try:
            expression = check(parse_expression(written), Columns(TYPES))
        except SqlError:
            continue
        context = Context()
        try:
            found = until(time.monotonic() + 30, partial(compute, expression, values, ROWS, context))
        except PotokError:
            continue  # it takes too long, or is too large
        found.validate(full=True)
        assert (found.type, len(found)) == (expression.type, ROWS)
        assert set(context.failures) <= set(range(ROWS))
        assert all(reason.encode() for reason in context.reported.values())
