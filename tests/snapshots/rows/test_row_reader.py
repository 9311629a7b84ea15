"""Read the rows of a table in a snapshot: by key, in a range, or all, with the time of each."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.records.keys import encode_key
from potok.snapshots.rows.key_ranges import span_of_range
from potok.snapshots.rows.row_reader import RowReader
from potok.topology.nodes.windows import tumbling


@pytest.fixture
def driver() -> Iterator[InProcess]:
    builder = StreamsBuilder("rows")
    builder.table("people", key="string", value="name string", name="people", history="1 hour")
    orders = builder.stream("orders", key="string", value="amount bigint")
    orders.group_by_key().count(name="counts")
    orders.group_by_key().windowed_by(tumbling("10 seconds")).count(name="windows")
    with InProcess(builder) as found:
        for number, (key, at) in enumerate([("a", 1_000), ("b", 2_000), ("a", 13_000), ("c", 14_000)]):
            found.send("orders", {"amount": number}, key, timestamp=at)
        for name, at in [("Ann", 1_000), ("Anna", 5_000), (None, 9_000)]:
            found.send("people", None if name is None else {"name": name}, "x", timestamp=at)
        found.send("people", {"name": "Bob"}, "y", timestamp=6_000)
        found.run(more_to_come=True)
        yield found


def reader_of(driver: InProcess, table: str) -> RowReader:
    return RowReader(driver.tables.layouts()[table])


def test_rows_are_found_by_key_with_the_time_of_their_last_record(driver: InProcess) -> None:
    reader = reader_of(driver, "counts")
    keys = [encode_key(key, reader.key_type) or b"" for key in ("a", "c", "nobody")]
    found = driver.tables.read(lambda cut: reader.decoded(reader.of_keys(cut, keys)))
    assert isinstance(found.values, pa.Array)
    assert (found.keys, found.values.to_pylist(), found.times) == (["a", "c"], [2, 1], [13_000, 14_000])


def test_rows_of_a_range_are_in_order(driver: InProcess) -> None:
    reader = reader_of(driver, "counts")
    span = span_of_range("b", None, reader.key_type)
    assert driver.tables.read(lambda cut: sorted(reader.decoded(list(reader.in_span(cut, span))).keys)) == ["b", "c"]
    every = driver.tables.read(lambda cut: reader.decoded(list(reader.in_span(cut, in_order=True))))
    assert every.keys == ["a", "b", "c"]


def test_windows_of_a_key_are_found_by_their_start(driver: InProcess) -> None:
    reader = reader_of(driver, "windows")
    key = encode_key("a", reader.key_type) or b""
    every = driver.tables.read(lambda cut: reader.decoded(reader.of_keys(cut, [key])))
    assert every.bounds == [(0, 10_000), (10_000, 20_000)]
    for starts in ((10_000, 10_000), (1, 10_000)):
        found = driver.tables.read(lambda cut, starts=starts: reader.decoded(reader.of_keys(cut, [key], starts)))
        assert (found.keys, found.bounds) == (["a"], [(10_000, 20_000)])


@pytest.mark.parametrize(
    ("instant", "names"),
    [(999, []), (1_000, ["Ann"]), (5_500, ["Anna"]), (8_999, ["Anna", "Bob"]), (9_000, ["Bob"])],
)
def test_rows_are_as_they_were_at_an_instant(driver: InProcess, instant: int, names: list[str]) -> None:
    reader = reader_of(driver, "people")
    found = driver.tables.read(lambda cut: reader.as_of(cut, instant))
    assert [value["name"] for value in found.values] == names
    key = encode_key("x", reader.key_type) or b""
    of_x = driver.tables.read(lambda cut: reader.as_of(cut, instant, [key]))
    assert [value["name"] for value in of_x.values] == [name for name in names if name != "Bob"]
