"""Sending whole records to the shard of their key."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pyarrow as pa

from operators.core.chunks import chunk_of, items, letters, task_of
from potok.expressions.function import Function
from potok.operators.core.chunk import from_wire
from potok.operators.exchange.repartition import Exchange, ShipRecords
from potok.operators.exchange.shuffle_writer import Outbox


def ship(chunk: Any, selector: Any = None, shards: int = 3) -> tuple[Outbox, Any]:
    outbox, task = Outbox(4), task_of()
    ShipRecords("s", task, None, outbox, 2, shards, selector).push(chunk)
    return outbox, task


def test_a_record_goes_to_the_shard_of_its_key_with_canonical_bytes() -> None:
    outbox, _ = ship(chunk_of(pa.array(["a", "b", "a"]), [1, 2, 3]))
    for parcel in outbox.parcels:
        keys = items(from_wire(parcel.payload).key)
        assert {crc32(key) % 3 for key in keys} == {parcel.shard}
        assert (parcel.level, parcel.step, parcel.task) == (2, "s", 4)
    assert sum(len(from_wire(parcel.payload)) for parcel in outbox.parcels) == 3


def test_only_what_is_selected_travels() -> None:
    selector = (Function.of(lambda v: 6 // v, (1, 2)), None)
    outbox, task = ship(chunk_of(["a", "a"], [0, 2]), selector, shards=1)
    (parcel,) = outbox.parcels
    assert items(from_wire(parcel.payload).value) == [3]
    assert [letter["reason"] for letter in letters(task)] == ["error"]


def test_parcels_are_numbered_in_the_order_they_were_sent() -> None:
    outbox, _ = ship(chunk_of(pa.array([str(n) for n in range(20)]), list(range(20))))
    assert [parcel.sequence for parcel in outbox.parcels] == list(range(len(outbox.parcels)))


def test_an_exchange_moves_records_as_they_are_also_those_without_a_key() -> None:
    outbox = Outbox(0)
    Exchange("e", task_of(), outbox, 1, 3).push(chunk_of(["a", None, {"x": 1}], [1, 2, 3]))
    moved = [from_wire(parcel.payload) for parcel in outbox.parcels]
    assert sorted(repr(key) for chunk in moved for key in items(chunk.key)) == ["'a'", "None", "{'x': 1}"]


def test_an_exchange_sets_aside_what_cannot_be_a_key() -> None:
    outbox, task = Outbox(0), task_of()
    Exchange("e", task, outbox, 1, 3).push(chunk_of([object(), "a"], [1, 2]))
    assert len(letters(task)) == 1
