"""Readers of a topic that share one look at it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from potok.log.broker import LOG_SCHEMA
from potok.log.open import open_broker
from potok.statements.tail import Block, Tail


def append(broker: object, *values: bytes) -> None:
    columns = [[None] * len(values), list(values), [0] * len(values), [None] * len(values), [None] * len(values)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, LOG_SCHEMA, strict=True)]
    broker.append("notes", pa.RecordBatch.from_arrays(arrays, schema=LOG_SCHEMA))  # type: ignore[attr-defined]


def values_of(blocks: list[Block]) -> list[bytes]:
    return [value for block in blocks for value in block.batch.column("value").to_pylist()]


def test_a_reader_gets_nothing_that_lies_before_its_place_though_the_tail_is_behind(tmp_path: Path) -> None:
    broker = open_broker(f"file:{tmp_path}")
    broker.create_topic("notes", 1)
    tail = Tail(broker)
    tail._places["notes"] = {0: 0}  # it has not handed over yet what is there
    append(broker, b"before", b"also before")
    reader = tail.subscribe("notes", broker.end_offsets("notes"))
    append(broker, b"after")
    got: list[bytes] = []
    while not got:
        got = values_of(reader.take(5))
    reader.close()
    assert got == [b"after"]
