"""Which rows of a table are read: decided once, for who reads and for who explains."""

from __future__ import annotations

import pyarrow as pa
import pytest

from potok.sql.catalog import Source, SourceColumn, WindowShape
from potok.statements.pull.allowed_values import Allowed
from potok.statements.pull.row_selection import EVERYTHING, MOST_LOOKUPS, Choice, choice_of
from statements.playing import Play

A, B = SourceColumn("A", pa.string(), is_key=True), SourceColumn("B", pa.string(), is_key=True)
HOURLY = WindowShape("TUMBLING", 3_600_000)
IN_A, IN_B, FROM_A = Allowed(("x", "y")), Allowed(("z",)), Allowed(None, "x", None)


def table(*keys: SourceColumn, window: WindowShape | None = None) -> Source:
    return Source("T", True, (*keys, SourceColumn("N", pa.int64())), "t", "json", "json", window=window)


@pytest.mark.parametrize(
    ("source", "allowed", "windows", "chosen"),
    [
        (table(A), {"t.A": IN_A}, False, Choice((IN_A.values,))),  # type: ignore[arg-type]
        (table(A, B), {"t.A": IN_A, "t.B": IN_B}, False, Choice((IN_A.values, IN_B.values))),  # type: ignore[arg-type]
        (table(A, B), {"t.A": IN_A}, False, EVERYTHING),
        (table(A), {"t.A": FROM_A}, False, Choice(within=FROM_A)),
        (table(A), {"t.A": Allowed(tuple(map(str, range(MOST_LOOKUPS + 1))))}, False, EVERYTHING),
        (table(A), {}, False, EVERYTHING),
        (table(A, window=HOURLY), {"t.A": IN_A}, True, Choice((IN_A.values,))),  # type: ignore[arg-type]
        (table(A, window=HOURLY), {"t.A": FROM_A}, True, EVERYTHING),
        (table(A, window=HOURLY), {"t.A": IN_A}, False, EVERYTHING),
    ],
)
def test_the_least_that_must_be_looked_at(
    source: Source, allowed: dict[str, Allowed], windows: bool, chosen: Choice
) -> None:
    assert choice_of(source, "t", allowed, windows=windows) == chosen


def test_what_is_explained_is_what_is_read(play: Play) -> None:
    """A topic whose keys hold windows is kept by those keys: nobody can look one up without its window."""
    play.do(
        """CREATE SOURCE TABLE w (k VARCHAR PRIMARY KEY, n INT)
            WITH (KAFKA_TOPIC = 'w', VALUE_FORMAT = 'JSON', WINDOW_TYPE = 'TUMBLING', WINDOW_SIZE = '1 HOUR',
                  PARTITIONS = 1);"""
    )
    (first, *_) = play.rows("EXPLAIN SELECT * FROM w WHERE k = 'x';")
    assert (first[1], first[4]) == ("table scan", "the windows are part of the record keys")
