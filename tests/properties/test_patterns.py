"""The matches of a pattern are those of naive backtracking, whatever the batches and shards."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from potok import StreamsBuilder
from potok.operators.patterns import open_runs
from potok.patterns.cep import Pattern
from potok.testing import TestDriver
from potok.topology.nodes import Match
from potok.topology.patterns.tree import variables_of
from tests.oracle.patterns import Result, match_all
from tests.properties.patterns import patterns

EXAMPLES = int(os.environ.get("POTOK_EXAMPLES", "60"))
AFTER = ["no_skip", "skip_to_next", "skip_past_last", "skip_to_first(a)", "skip_to_last(a)"]
FAR = 1_000_000

records = st.lists(
    st.tuples(st.sampled_from(["k1", "k2"]), st.integers(0, 5), st.integers(0, 4), st.integers(0, 1)),
    min_size=1,
    max_size=14,
)


@settings(
    max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(
    pattern=patterns(),
    given_=records,
    after=st.sampled_from(AFTER),
    batch=st.integers(1, 9),
    typed=st.booleans(),
    segment=st.sampled_from([1, 2, open_runs.SIZE]),
)
def test_matches_are_those_of_backtracking(
    pattern: Pattern, given_: list[tuple[str, int, int, int]], after: str, batch: int, typed: bool, segment: int
) -> None:
    if "(a)" in after and "a" not in variables_of(pattern.tree):
        after = "skip_past_last"
    builder = StreamsBuilder("patterns")
    stream = builder.stream("in", value="x bigint") if typed else builder.stream("in")
    matched = stream.group_by_key().match(pattern, after=after, grace=3, name="found")
    matched.to("matches")
    if pattern.ends_in_time:
        matched.timeouts.to("timeouts")
    node = next(node for node in builder.build() if isinstance(node, Match))
    rows, sent = _rows(given_)

    sizes = patch.multiple(open_runs, SIZE=segment, FEW=min(segment, 8) - 1)
    with sizes, TestDriver(builder, partitions={"in": 2}, shards=2) as driver:
        for key, value, time, partition in sent:
            driver.send("in", value, key=key, timestamp=time, partition=partition)
        for partition in (0, 1):
            driver.send("in", {"x": -1}, key=f"end{partition}", timestamp=FAR, partition=partition)
        driver.run(batch_records=batch)
        found = _by_key(driver.read("matches"))
        over = _by_key(driver.read("timeouts")) if pattern.ends_in_time else {}
        assert not driver.dead_letters()

    for key, ordered in rows.items():
        matches, timeouts = match_all(pattern, node.after, ordered)
        assert found.get(key, []) == [_rendered(one, node, ordered) for one in matches], (str(pattern), after, ordered)
        if pattern.ends_in_time:
            assert over.get(key, []) == [_rendered(one, node, ordered) for one in timeouts], (str(pattern), ordered)


def _rows(given_: list[tuple[str, int, int, int]]) -> tuple[dict[str, list[tuple[int, Any]]], list[Any]]:
    """Return the records of each key in event-time order, and all of them as sent, up to 3 s out of order."""
    rows: dict[str, list[tuple[int, int, int, Any]]] = defaultdict(list)
    sent, clock = [], 10_000
    offsets = [0, 0]
    for key, x, step, partition in given_:
        clock += 1_000 * step
        time = clock - 1_000 * (x % 3)
        value = {"x": x}
        sent.append((key, value, time, partition))
        rows[key].append((time, partition, offsets[partition], value))
        offsets[partition] += 1
    return {
        key: [(row[0], row[3]) for row in sorted(found, key=lambda row: row[:3])] for key, found in rows.items()
    }, sent


def _by_key(read: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for record in read:
        if record.key.startswith("k"):
            found[record.key].append((record.timestamp_ms, record.value))
    return found


def _rendered(result: Result, node: Match, rows: list[tuple[int, Any]]) -> tuple[int, dict[str, list[Any]]]:
    value: dict[str, list[Any]] = {name: [] for name in node.variables}
    for name, index in result.taken:
        value[name].append(rows[index][1])
    return result.time, value
