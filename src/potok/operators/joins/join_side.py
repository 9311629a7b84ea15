"""Input of a join: records with a key, in time, reduced to the fields that the joiner reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.operators.core.call import Errors, describe_error, plain
from potok.operators.core.chunk import Chunk, Column, as_objects, to_wire
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, Task, all_but
from potok.operators.core.unserializable import NOT_DATA
from potok.operators.exchange.shuffle_writer import Rows, ShuffleWriter, packed
from potok.records.keys import encode_each_key
from potok.state.codec import dump_state, load_state


@dataclass(frozen=True, slots=True)
class Reach:
    """How much earlier and later than a record its partners may be, and the grace."""

    earlier_ms: int
    later_ms: int
    grace_ms: int

    def late(self, chunk: Chunk) -> Errors:
        passed = chunk.stream_time - (chunk.timestamp + self.later_ms + self.grace_ms)
        return {int(row): self._reason(chunk, int(row), int(passed[row])) for row in np.flatnonzero(passed > 0)}

    def _reason(self, chunk: Chunk, row: int, passed: int) -> str:
        time, stream_time = int(chunk.timestamp[row]), int(chunk.stream_time[row])
        start, end = time - self.earlier_ms, time + self.later_ms
        return (
            f"join window [{start}, {end}] was closed: stream time {stream_time} is {passed} ms past its end and grace"
        )


@dataclass(slots=True)
class JoinSide:
    """The input of one side of a join. Processing the same records twice changes nothing.

    Keys become canonical bytes. `reach` is None for records that are never late; with `keyless`, a record without a
    key finds nothing and is kept; with `silent`, another step has set aside what is rejected.
    """

    name: str
    task: Task
    fields: tuple[str, ...] | None = None
    reach: Reach | None = None
    keyless: bool = False
    silent: bool = False

    def admit(self, chunk: Chunk) -> Chunk:
        encoded = encode_each_key(chunk.key)
        plain_chunk = replace(chunk, key=encoded.values, raw_key=None, raw_value=None, intact=False)
        errors = {**encoded.errors}
        self._set_aside(chunk, errors, Reason.ERROR)
        if not self.keyless and encoded.values.null_count > len(encoded.errors):
            without = np.flatnonzero(encoded.values.is_null().to_numpy(zero_copy_only=False)).tolist()
            missing = {row: "the record has no key to join by" for row in without if row not in errors}
            self._set_aside(chunk, missing, Reason.NO_KEY)
            errors |= missing
        if self.reach is not None:
            late = {row: text for row, text in self.reach.late(chunk).items() if row not in errors}
            self._set_aside(chunk, late, Reason.LATE)
            errors |= late
        if errors:
            plain_chunk = plain_chunk.where(all_but(errors, len(chunk)))
        return plain_chunk if self.fields is None else plain_chunk.with_value(project(plain_chunk.value, self.fields))

    def _set_aside(self, chunk: Chunk, errors: Errors, reason: Reason) -> None:
        if errors and not self.silent:
            self.task.dead_letters.add(chunk, errors, self.name, reason)


class SendSide(Operator):
    """Send the accepted records of a side to the shards of their keys."""

    counted = False

    def __init__(
        self, name: str, task: Task, side: JoinSide, shuffle_writer: ShuffleWriter, level: int, shards: int
    ) -> None:
        super().__init__(name, task)
        self._side, self._shuffle_writer, self._level, self._shards = side, shuffle_writer, level, shards

    def process(self, chunk: Chunk) -> None:
        admitted = self._side.admit(chunk)
        if len(admitted):
            assert isinstance(admitted.key, pa.Array)
            keys = admitted.key.fill_null(b"")
            for shard, payload in packed(self._side.name, self.task, admitted, keys, self._shards, _part):
                self._shuffle_writer.send(self._level, shard, self.name, payload)


def _part(chunk: Chunk, rows: Rows) -> bytes:
    return to_wire(chunk if len(rows) == len(chunk) else chunk.take(rows))


class Port:
    """Collect all records of one side."""

    def __init__(self, operator: Operator, side: JoinSide) -> None:
        self._operator, self._side = operator, side
        self.chunks: list[Chunk] = []

    def push(self, chunk: Chunk) -> None:
        self._operator.task.records_in[self._operator.name] += len(chunk)
        admitted = self._side.admit(chunk)
        if len(admitted):
            self.chunks.append(admitted)


def project(column: Column, fields: tuple[str, ...]) -> pa.Array:
    """Return a struct with some of its fields; nothing if none is read."""
    assert not isinstance(column, list)
    if not fields:
        return pa.nulls(len(column))
    if tuple(field.name for field in column.type) == fields:
        return column
    parts = [pc.struct_field(column, [name]) if column.null_count else column.field(name) for name in fields]
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(parts, fields=[column.type.field(name) for name in fields], mask=mask)


def stored_values(chunk: Chunk, type_: pa.DataType | None) -> tuple[pa.Array, Errors]:
    """Return values as stored in state: typed ones as they are, dynamic ones as pickles, if they are data."""
    if type_ is not None:
        assert not isinstance(chunk.value, list)
        return chunk.value, {}
    pickles: list[bytes] = []
    errors: Errors = {}
    for row, value in enumerate(as_objects(chunk.value)):
        try:
            pickles.append(dump_state(plain(value)))
        except NOT_DATA as error:
            errors[row] = describe_error(error)
            pickles.append(b"")
    return pa.array(pickles, pa.binary()), errors


def rendered_values(values: pa.Array, type_: pa.DataType | None) -> Column:
    return values if type_ is not None else [load_state(data) for data in values.to_pylist()]


def no_values(count: int, type_: pa.DataType | None) -> Column:
    return [None] * count if type_ is None else pa.nulls(count, type_)
