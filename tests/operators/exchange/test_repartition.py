"""Sending whole records to the shard of their key."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pyarrow as pa

from operators.core.chunks import chunk_of, items, letters, task_of
from potok.expressions.function import Function
from potok.operators.core.chunk import from_wire
from potok.operators.exchange.repartition import Exchange, RepartitionRecords
from potok.operators.exchange.shuffle_writer import ShuffleWriter


def ship(chunk: Any, selector: Any = None, shards: int = 3) -> tuple[ShuffleWriter, Any]:
    shuffle_writer, task = ShuffleWriter(4), task_of()
    RepartitionRecords("s", task, None, shuffle_writer, 2, shards, selector).push(chunk)
    return shuffle_writer, task


def test_a_record_goes_to_the_shard_of_its_key_with_canonical_bytes() -> None:
    shuffle_writer, _ = ship(chunk_of(pa.array(["a", "b", "a"]), [1, 2, 3]))
    for shuffle_block in shuffle_writer.shuffle_blocks:
        keys = items(from_wire(shuffle_block.payload).key)
        assert {crc32(key) % 3 for key in keys} == {shuffle_block.shard}
        assert (shuffle_block.level, shuffle_block.step, shuffle_block.task) == (2, "s", 4)
    assert sum(len(from_wire(shuffle_block.payload)) for shuffle_block in shuffle_writer.shuffle_blocks) == 3


def test_only_what_is_selected_travels() -> None:
    selector = (Function.of(lambda v: 6 // v, (1, 2)), None)
    shuffle_writer, task = ship(chunk_of(["a", "a"], [0, 2]), selector, shards=1)
    (shuffle_block,) = shuffle_writer.shuffle_blocks
    assert items(from_wire(shuffle_block.payload).value) == [3]
    assert [letter["reason"] for letter in letters(task)] == ["error"]


def test_parcels_are_numbered_in_the_order_they_were_sent() -> None:
    shuffle_writer, _ = ship(chunk_of(pa.array([str(n) for n in range(20)]), list(range(20))))
    assert [shuffle_block.sequence for shuffle_block in shuffle_writer.shuffle_blocks] == list(
        range(len(shuffle_writer.shuffle_blocks))
    )


def test_an_exchange_moves_records_as_they_are_also_those_without_a_key() -> None:
    shuffle_writer = ShuffleWriter(0)
    Exchange("e", task_of(), shuffle_writer, 1, 3).push(chunk_of(["a", None, {"x": 1}], [1, 2, 3]))
    moved = [from_wire(shuffle_block.payload) for shuffle_block in shuffle_writer.shuffle_blocks]
    assert sorted(repr(key) for chunk in moved for key in items(chunk.key)) == ["'a'", "None", "{'x': 1}"]


def test_an_exchange_sets_aside_what_cannot_be_a_key() -> None:
    shuffle_writer, task = ShuffleWriter(0), task_of()
    Exchange("e", task, shuffle_writer, 1, 3).push(chunk_of([object(), "a"], [1, 2]))
    assert len(letters(task)) == 1
