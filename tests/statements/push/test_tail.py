"""Readers of a topic that share one look at it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from potok.log.broker import LOG_SCHEMA, Broker
from potok.log.open import open_broker
from potok.statements.push import tail as tails
from potok.statements.push.tail import Block, SlowReader, Subscription, Tail, TooManyWait


def append(broker: object, *values: bytes) -> None:
    columns = [[None] * len(values), list(values), [0] * len(values), [None] * len(values), [None] * len(values)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, LOG_SCHEMA, strict=True)]
    broker.append("notes", pa.RecordBatch.from_arrays(arrays, schema=LOG_SCHEMA))  # type: ignore[attr-defined]


def values_of(blocks: list[Block]) -> list[bytes]:
    return [value for block in blocks for value in block.batch.column("value").to_pylist()]


def test_a_reader_gets_nothing_before_its_position_although_the_tail_is_behind(tmp_path: Path) -> None:
    broker = open_broker(f"file:{tmp_path}")
    broker.create_topic("notes", 1)
    tail = Tail(broker)
    tail._positions["notes"] = {0: 0}  # it has not handed over yet what is there
    append(broker, b"before", b"also before")
    reader = tail.subscribe("notes", broker.end_offsets("notes"))
    append(broker, b"after")
    got: list[bytes] = []
    while not got:
        got = values_of(reader.take(5))
    reader.close()
    assert got == [b"after"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with closing(open_broker(f"file:{tmp_path}")) as found:
        found.create_topic("notes", 1)
        yield found


def joined(tail: Tail, broker: Broker) -> Subscription:
    """A reader that is handed what comes; the test hands it over."""
    reader = tail.subscribe("notes", broker.end_offsets("notes"))
    tail._thread = threading.current_thread()
    assert reader.take(0) == []
    return reader


def test_records_that_wait_for_many_readers_count_once_until_the_last_has_them(broker: Broker) -> None:
    tail = Tail(broker)
    readers = [joined(tail, broker) for _ in range(10)]
    append(broker, b"x" * 100_000)
    tail._look(["notes"])
    assert 100_000 < tail.memory.used < 200_000
    for reader in readers:
        assert tail.memory.used > 0
        assert values_of(reader.take(0)) == [b"x" * 100_000]
    assert tail.memory.used == 0


def test_beyond_what_all_may_leave_the_slowest_reader_is_dropped(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "MOST_OF_ALL", 350_000)
    tail = Tail(broker)
    slow, quick = joined(tail, broker), joined(tail, broker)
    for _ in range(3):
        append(broker, b"x" * 100_000)
        tail._look(["notes"])
        assert len(values_of(quick.take(0))) == 1
    append(broker, b"last")
    append(broker, b"x" * 100_000)
    tail._look(["notes"])
    with pytest.raises(SlowReader):
        slow.take(0)
    assert len(values_of(quick.take(0))) == 2
    assert tail.memory.used == 0


def test_a_reader_of_the_past_waits_its_turn_where_there_is_no_room(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(broker, b"x" * 100_000)
    tail = Tail(broker)
    first = tail.subscribe("notes", {0: 0})
    kept = first.take(0)
    monkeypatch.setattr(tails, "MOST_OF_ALL", 50_000)
    with closing(tail.subscribe("notes", {0: 0})) as other, pytest.raises(TooManyWait):
        other.take(0)
    assert len(values_of(kept)) == 1
    del kept
    first.close()
    with closing(tail.subscribe("notes", {0: 0})) as other:
        assert len(values_of(other.take(0))) == 1
