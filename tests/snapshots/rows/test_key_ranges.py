"""Ranges and prefixes of keys: which rows are found, and how few are read."""

from __future__ import annotations

from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.snapshots.rows import row_reader
from potok.topology.nodes.windows import tumbling_ms

TEXTS = ["", "a", "user-1", "user-10", "user-2", "userx", "ü", "user-" + "x" * 600, "user-" + "x" * 500, "\U0001f600"]


@pytest.mark.parametrize("key", [str, None], ids=["typed", "dynamic"])
def test_strings_are_found_by_prefix_and_by_range(key: Any) -> None:
    builder = StreamsBuilder("q")
    builder.table("t", key=key)
    with InProcess(builder, shards=3) as driver:
        for number, text in enumerate(TEXTS):
            driver.send("t", number, text if key is str else f'"{text}"', timestamp=1)
        driver.run()
        table, rows = driver.table("t"), dict(zip(TEXTS, range(len(TEXTS)), strict=True))
        for text in ("", "u", "user-", "user-1", "user-x", "user-" + "x" * 550, "nobody", "ü"):
            expected = {name: rows[name] for name in sorted(rows) if name.startswith(text)}
            assert list(table.prefix(text).items()) == list(expected.items())
        bounds = [None, "", "a", "user-1", "user-2", "v", "user-" + "x" * 550]
        for low in bounds:
            for high in bounds:
                inside = [n for n in sorted(rows) if (low is None or low <= n) and (high is None or n < high)]
                assert list(table.range(low, high)) == inside


@pytest.mark.parametrize(("key", "keys"), [(int, [-5, 0, 3, 300]), (float, [-1.5, 0.0, 2.25, 1e9])])
def test_numbers_are_found_by_range(key: Any, keys: list[Any]) -> None:
    builder = StreamsBuilder("q")
    builder.table("t", key=key)
    with InProcess(builder, shards=2) as driver:
        for number in keys:
            driver.send("t", 1, number, timestamp=1)
        driver.run()
        table = driver.table("t")
        assert list(table.range(keys[1], keys[3])) == keys[1:3]
        assert list(table.range(high=keys[1])) == keys[:1]
        assert table.range("a", "b") == {}
        assert table.prefix("1") == {}


def test_a_range_reads_no_more_rows_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StreamsBuilder("q")
    builder.table("t")
    seen: list[bytes] = []
    scan = row_reader.scan_span

    def counted(*args: Any) -> Any:
        cells = list(scan(*args))
        seen.extend(key for key, _ in cells)
        return cells

    monkeypatch.setattr(row_reader, "scan_span", counted)
    with InProcess(builder) as driver:
        for number in range(100):
            driver.send("t", number, f"k{number:03}", timestamp=1)
        driver.run()
        assert len(driver.table("t").prefix("k01")) == 10
        assert len(driver.table("t").range("k050", "k055")) == 5
    assert len(seen) == 15


def test_windows_are_found_by_the_key_that_was_grouped_by() -> None:
    builder = StreamsBuilder("q")
    builder.stream("s").group_by_key().windowed_by(tumbling_ms(10, 0, 100)).count(name="w")
    with InProcess(builder) as driver:
        for key in ("user-1", "user-2", "other"):
            driver.send("s", 1, key, timestamp=1)
        driver.run()
        table = driver.table("w")
        assert [row.key for row in table.prefix("user-")] == ["user-1", "user-2"]
        assert [row.key for row in table.range("other", "user-2")] == ["other", "user-1"]
