"""Send whole records to the shard of their key, with the results of `opens` and `closes` for each."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.operators.core.call import Errors, truth
from potok.operators.core.chunk import Chunk, to_wire
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Task, all_but
from potok.operators.exchange.repartition import RepartitionRecords, only_fields
from potok.operators.exchange.send import Rows, packed
from potok.operators.exchange.shards import key_column
from potok.operators.exchange.shuffle_writer import ShuffleWriter
from potok.operators.windows.lateness import EventWindow, on_time
from potok.records.keys import encode_keys

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
