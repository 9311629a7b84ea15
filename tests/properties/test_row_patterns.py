"""MATCH_RECOGNIZE finds what naive backtracking finds: pulled, and as a stream, whatever the batches and restarts."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from potok.sql.errors import SqlError
from potok.testing import SqlDriver
from tests.oracle.row_patterns import Anchor, Chain, Either, Variable
from tests.properties.row_patterns import (
    CONDITIONS,
    MEASURES,
    SKIPS,
    SUBSET,
    Rows,
    expected,
    patterns,
    text_of,
    variables_of,
)

EXAMPLES = int(os.environ.get("POTOK_EXAMPLES", "60"))
NAMES = ("FIRST_A", "LAST_S", "N", "C", "M", "D", "LAST", "BEFORE_B")
TICKS = """
CREATE STREAM ticks (symbol VARCHAR KEY, price BIGINT)
  WITH (KAFKA_TOPIC = 'ticks', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
"""
FAR = 10_000_000

SHOWN = [
    "ONE ROW PER MATCH",
    "ALL ROWS PER MATCH",
    "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
]
records = st.lists(st.tuples(st.sampled_from("xy"), st.integers(1, 6), st.integers(0, 3)), min_size=1, max_size=11)


@settings(
    max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(
    pattern=patterns(),
    anchor=st.sampled_from(["", "", "", "^", "$"]),
    given_=records,
    rendered=st.sampled_from(SHOWN),
    skip=st.sampled_from(sorted(SKIPS)),
    within=st.sampled_from([None, None, 2, 5]),
    batch=st.integers(1, 6),
    restart=st.booleans(),
)
def test_rows_are_those_of_backtracking(
    pattern: Any,
    anchor: str,
    given_: list[tuple[str, int, int]],
    rendered: str,
    skip: str,
    within: int | None,
    batch: int,
    restart: bool,
) -> None:
    if anchor:
        pattern = Chain((Anchor("^"), pattern) if anchor == "^" else (pattern, Anchor("$")))
    # All variables that measures name have to be in the pattern.
    missing = sorted({*"ABCD"} - variables_of(pattern))
    pattern = Either((pattern, *(Chain((Variable(name), Variable("NEVER"))) for name in missing)))
    clause = _clause(pattern, rendered, skip, within)
    rows = _rows(given_)
    within_ms = None if within is None else within * 1_000
    with SqlDriver(TICKS) as driver:
        time = 0
        for symbol, price, step in given_:
            time += step * 1_000
            driver.send("ticks", {"price": price}, key=symbol, timestamp=time)
        try:
            pulled = driver.query(f"SELECT * FROM ticks {clause};")
        except SqlError:
            assume(False)
            return
        for symbol, own in rows.items():
            found = [_values(row, rendered) for row in pulled if row["SYMBOL"] == symbol]
            assert found == expected(pattern, own, rendered, skip, within_ms, bounded=True), clause
        try:
            driver.execute(f"CREATE STREAM matches AS SELECT * FROM ticks {clause} EMIT CHANGES;")
        except SqlError:
            return
        if restart:
            driver.run(batch_records=batch)
            driver.restart()
        driver.send("ticks", {"price": 1}, key="end", timestamp=FAR)
        driver.run(batch_records=batch)
        assert not driver.dead_letters()
        streamed = [row.columns for row in driver.rows("matches")]
        for symbol, own in rows.items():
            found = [_values(row, rendered) for row in streamed if row["SYMBOL"] == symbol]
            assert found == expected(pattern, own, rendered, skip, within_ms, bounded=False), clause


def _clause(pattern: Any, rendered: str, skip: str, within: int | None) -> str:
    time = "" if within is None else f"WITHIN INTERVAL '{within}' SECOND"
    named = variables_of(pattern)
    defined = ", ".join(f"{name} AS {condition}" for name, (condition, _) in CONDITIONS.items() if name in named)
    return (
        f"MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ROWTIME MEASURES {MEASURES} {rendered} "
        f"AFTER MATCH SKIP {skip} PATTERN ({text_of(pattern)}) {time} SUBSET {SUBSET} DEFINE {defined})"
    )


def _rows(given_: list[tuple[str, int, int]]) -> dict[str, Rows]:
    rows: dict[str, Rows] = defaultdict(list)
    time = 0
    for symbol, price, step in given_:
        time += step * 1_000
        rows[symbol].append({"PRICE": price, "ROWTIME": time})
    return rows


def _values(row: dict[str, Any], rendered: str) -> list[Any]:
    return [row[name] for name in (*NAMES, *(() if rendered.startswith("ONE") else ("PRICE",)))]
