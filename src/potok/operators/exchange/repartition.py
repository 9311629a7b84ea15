"""Send whole records to the shard of their key, where an aggregate or a table processes them one by one."""

from __future__ import annotations

import pickle
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.operators.aggregates.pre_aggregate import GroupRecords
from potok.operators.core.call import Errors, call_python, call_traced, plain_all, truth
from potok.operators.core.chunk import Chunk, Column, to_wire
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, Task, all_but
from potok.operators.exchange.shards import key_column
from potok.operators.exchange.shuffle_writer import Rows, ShuffleWriter, packed
from potok.operators.windows.lateness import EventWindow, on_time
from potok.records.keys import encode_each_key, encode_keys
from potok.records.rows import rows_of
from potok.topology.nodes import FixedWindow


class RepartitionRecords(GroupRecords):
    """Select what an aggregate reads of each record, and send it under its canonical key."""

    def __init__(
        self,
        name: str,
        task: Task,
        window: FixedWindow | None,
        shuffle_writer: ShuffleWriter,
        level: int,
        shards: int,
        selector: tuple[Function, Expr | None] | None = None,
        fields: frozenset[str] | None = None,
    ) -> None:
        super().__init__(name, task, window)
        self._shuffle_writer, self._level, self._shards, self._selector = shuffle_writer, level, shards, selector
        self._fields = fields

    def process(self, chunk: Chunk) -> None:
        dynamic_keys = isinstance(chunk.key, list)
        chunk, _ = self.admit(chunk)
        if len(chunk) and self._selector is not None:
            chunk = self._select(chunk, *self._selector, dynamic_keys=dynamic_keys)
        if not len(chunk):
            return
        as_read = chunk.intact
        keys = encode_keys(chunk.key)
        keyed = replace(chunk, key=keys, raw_key=None, raw_value=None, intact=False)
        if self._fields is not None and isinstance(chunk.value, list):
            keyed.value = only_fields(chunk.value, self._fields)

        def pack(chunk: Chunk, rows: Rows) -> bytes:
            return to_wire(chunk.take(rows), as_read=as_read)

        for shard, payload in packed(self.name, self.task, keyed, keys, self._shards, pack, chunk):
            self._shuffle_writer.send(self._level, shard, self.name, payload)

    def _select(self, chunk: Chunk, function: Function, expr: Expr | None, *, dynamic_keys: bool) -> Chunk:
        """Select with the original keys: a function of key and value does not expect canonical bytes."""
        decoded = chunk.with_key(key_column(chunk.key, None)) if dynamic_keys and function.arity == 2 else chunk
        column, errors = self.selected(decoded, function, expr)
        if errors:
            self.task.dead_letters.add(chunk, errors, self.name, Reason.ERROR)
        return chunk.with_value(column).where(all_but(errors, len(chunk)))

    def selected(self, chunk: Chunk, function: Function, expr: Expr | None) -> tuple[Column, Errors]:
        """Return what the aggregate reads of each record, and the errors of records where that fails."""
        if expr is not None:
            called = call_traced(expr, function, chunk, self.task.failures)
            return called.column, called.errors
        results, errors = call_python(function, chunk)
        return plain_all(results), errors


def only_fields(values: list[Any], fields: frozenset[str]) -> list[Any]:
    """Reduce dynamic values to the fields that are read."""
    names = sorted(fields)
    if names and set(map(type, values)) == {dict}:
        try:
            found = list(map(itemgetter(*names), values))
        except KeyError:
            pass  # a value lacks a field
        else:
            return [{names[0]: v} for v in found] if len(names) == 1 else [dict(zip(names, v)) for v in found]  # noqa: B905 - speed; an itemgetter gives as many as it has names
    return [{f: v[f] for f in names if f in v} if type(v) is dict else v for v in values]


def grouped_keys(keys: Column) -> Column:
    """Return the keys of a windowed table, without the windows."""
    return [key["key"] for key in keys] if isinstance(keys, list) else keys.field(0)


class Exchange(Operator):
    """Send records unchanged to the shard of their key; records without a key go to one shard.

    The rows of a `windowed` table are on the shard of the grouping key, without the window.
    """

    counted = False

    def __init__(
        self,
        name: str,
        task: Task,
        shuffle_writer: ShuffleWriter,
        level: int,
        shards: int,
        windowed: bool = False,
        step: str = "",
    ) -> None:
        """Args:
        step: The step that records are sent to; those that cannot be sent are its dead letters.
        """
        super().__init__(name, task)
        self._shuffle_writer, self._level, self._shards, self._windowed = shuffle_writer, level, shards, windowed
        self.step = step or name

    def process(self, chunk: Chunk) -> None:
        encoded = encode_each_key(grouped_keys(chunk.key) if self._windowed else chunk.key)
        keys = encoded.values.fill_null(b"")
        if encoded.errors:
            keys = keys.filter(pa.array(all_but(encoded.errors, len(chunk))))
            chunk = self.set_aside(chunk, encoded.errors)
        for shard, payload in packed(self.step, self.task, chunk, keys, self._shards, _part):
            self._shuffle_writer.send(self._level, shard, self.name, payload)


class ExchangeDynamic(Exchange):
    """Send records to the shard of their key in its dynamic form, whatever its type here."""

    def process(self, chunk: Chunk) -> None:
        super().process(chunk if isinstance(chunk.key, list) else chunk.with_key(rows_of(chunk.key)))


class GatherRecords(Operator):
    """Send all records, whatever their keys, to the first shard."""

    counted = False

    def __init__(self, name: str, task: Task, shuffle_writer: ShuffleWriter, level: int, step: str) -> None:
        super().__init__(name, task)
        self._shuffle_writer, self._level, self.step = shuffle_writer, level, step

    def process(self, chunk: Chunk) -> None:
        no_key = pa.nulls(len(chunk), pa.binary()).fill_null(b"")
        for shard, payload in packed(self.step, self.task, chunk, no_key, 1, _part):
            self._shuffle_writer.send(self._level, shard, self.name, payload)


def _part(chunk: Chunk, rows: Rows) -> bytes:
    return to_wire(chunk.take(rows))


Predicate = tuple[Function, Expr | None]
"""A user's function, and its expression if it was traced."""

OPENS, CLOSES = 1, 2


class RepartitionFlagged(RepartitionRecords):
    """Select what an aggregate reads of each record, and send it with its flags under its canonical key."""

    def __init__(
        self,
        name: str,
        task: Task,
        window: EventWindow,
        shuffle_writer: ShuffleWriter,
        level: int,
        shards: int,
        selector: Predicate | None,
        fields: frozenset[str] | None,
        flags: tuple[Predicate | None, Predicate | None],
        *,
        valueless: bool = False,
    ) -> None:
        super().__init__(name, task, None, shuffle_writer, level, shards, selector, fields)
        self._event_window, self._flags, self._valueless = window, flags, valueless
        self._calls = selector is not None or any(flags)

    def process(self, chunk: Chunk) -> None:
        dynamic = isinstance(chunk.key, list)
        chunk = on_time(self, self._event_window, self.keyed(chunk))
        if not len(chunk):
            return
        # The user's functions see the original keys, not bytes.
        seen = chunk.with_key(key_column(chunk.key, None)) if dynamic and self._calls else chunk
        flags, errors = self._flagged(seen)
        value = chunk.value
        if self._selector is not None:
            value, failed = self.selected(seen, *self._selector)
            errors = {**failed, **errors}
        good = all_but(errors, len(chunk))
        if errors:
            self.task.dead_letters.add(seen, errors, self.name, Reason.ERROR)
        if self._valueless:
            value = pa.nulls(len(chunk))
        keys = encode_keys(chunk.key)
        chunk = replace(chunk, key=keys, value=value, headers=None, raw_key=None, raw_value=None, intact=False).where(
            good
        )
        if len(chunk):
            self._send(chunk, flags[good])

    def _flagged(self, chunk: Chunk) -> tuple[npt.NDArray[np.uint8], Errors]:
        """Return which records may open a session, and which close theirs."""
        opens, closes = self._flags
        flags = np.full(len(chunk), OPENS if opens is None else 0, np.uint8)
        errors: Errors = {}
        for mark, predicate in ((OPENS, opens), (CLOSES, closes)):
            if predicate is not None:
                function, expr = predicate
                answers, failed = truth(expr, function, chunk, self.task.failures)
                flags |= np.where(answers, mark, 0).astype(np.uint8)
                errors = {**failed, **errors}
        return flags, errors

    def _send(self, chunk: Chunk, flags: npt.NDArray[np.uint8]) -> None:
        if self._fields is not None and isinstance(chunk.value, list):
            chunk.value = only_fields(chunk.value, self._fields)

        def pack(chunk: Chunk, rows: Rows) -> bytes:
            return pickle.dumps((flags[rows].tobytes(), to_wire(chunk.take(rows))), protocol=5)

        for shard, payload in packed(self.name, self.task, chunk, chunk.key, self._shards, pack):
            self._shuffle_writer.send(self._level, shard, self.name, payload)
