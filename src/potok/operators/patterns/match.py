"""Match patterns: conditions are evaluated as columns, and only keys that a pattern can concern are visited."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.expressions.expr import Expr
from potok.operators.cells.wake_index import WakeIndex
from potok.operators.core.call import Errors, describe_error, plain_all, truth
from potok.operators.core.chunk import Chunk, Ints, as_objects, concat, in_order, order_of
from potok.operators.core.dead_letters import InputPartition, Reason
from potok.operators.core.operator import SeveralOutputs, Task, all_but
from potok.operators.core.unserializable import not_data
from potok.operators.exchange.shards import key_column
from potok.operators.patterns.machine import Machine
from potok.operators.patterns.matches import Matches
from potok.operators.patterns.runs import Row, Runs, runs_of
from potok.operators.windows.open_windows import timers_of
from potok.records.keys import encode_each_key
from potok.records.rows import converter_of
from potok.state.cell_mismatch import reading_cells
from potok.state.session import StateSession
from potok.topology.inference.step import Step
from potok.topology.nodes import Match
from potok.topology.patterns.program import compile_pattern

TIMEOUTS = 0
"""The output of what had matched when its time was over."""


@dataclass(slots=True)
class _Received:
    """The records of a batch in order, with the number of the key of each and the conditions that it satisfies."""

    chunk: Chunk
    keys: list[bytes]
    key_numbers: npt.NDArray[np.int64]
    bits: Ints


class MatchRecords(SeveralOutputs):
    """Find the matches of a pattern among the records of each key.

    Records come in event-time order, behind the watermark: all with a time before the watermark have been seen. A
    match whose time is over at t ends before a record with time t is processed, so it does not matter whether that
    happens in the batch of this record or in one without records.
    """

    def __init__(
        self,
        node: Match,
        task: Task,
        upstream: Step,
        value_type: pa.DataType | None,
        exprs: tuple[Expr | None, ...],
        session: StateSession,
        clock_ms: int,
        input_partitions: list[InputPartition],
    ) -> None:
        super().__init__(node.name, task)
        self._key_type, self._session, self._clock_ms = upstream.key, session, clock_ms
        self._input_partitions = input_partitions
        self._definitions = node.pattern.definitions
        given = iter(exprs)
        self._exprs = [None if one.condition is None else next(given) for one in self._definitions]
        iterative = {
            number: one.condition.callable
            for number, one in enumerate(self._definitions)
            if one.condition is not None and one.iterative
        }
        program = compile_pattern(node.pattern)
        pattern = node.pattern
        self._machine = Machine(
            program,
            iterative,
            node.after,
            pattern.semantics,
            pattern.within_ms,
            node.max_runs,
            converter_of(upstream.value),
        )
        firsts = {program.states[state].variable for state in program.begin}
        self._firsts = sum(1 << number for number in firsts if number is not None)
        self._iterative = sum(1 << number for number in iterative)
        self._table = runs_of(node.name)
        self._timers = WakeIndex(timers_of(node.name), session)
        self._matches = Matches(node, program.variables, value_type)
        self._chunks: list[Chunk] = []

    @property
    def state_tables(self) -> list[str]:
        return [self._table, self._timers.table]

    def next_due(self) -> int | None:
        return self._timers.next_due()

    def process(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)

    def finish(self) -> None:
        received = self._received()
        woken = self._timers.due(self._clock_ms)
        if received is not None:
            self._advance(received, woken)
        elif woken:
            self._visit(woken, self._session.read(self._table, woken), {}, set(woken))
        self._timers.flush(self._clock_ms)
        for over, chunk in self._matches.chunks(self._key_type):
            if over:
                self.task.records_out[self.name] += len(chunk)
                for receiver in self.outputs.get(TIMEOUTS, []):
                    receiver.push(chunk)
            else:
                self.emit(chunk)

    def _received(self) -> _Received | None:
        """Return the records in order, without those that have no key or for which a condition raises."""
        chunks, self._chunks = self._chunks, []
        if not chunks:
            return None
        chunk = in_order(concat(chunks))
        encoded = encode_each_key(chunk.key)
        values = encoded.values
        if values.null_count or encoded.errors:
            nulls = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist()
            missing = {row: "the record has no key" for row in nulls if row not in encoded.errors}
            self.task.dead_letters.add(chunk, encoded.errors, self.name, Reason.ERROR)
            self.task.dead_letters.add(chunk, missing, self.name, Reason.NO_KEY)
            good = all_but({**missing, **encoded.errors}, len(chunk))
            chunk, values = chunk.where(good), values.filter(pa.array(good))
        bits, errors = self._bits(chunk)
        if errors:
            good = all_but(errors, len(chunk))
            chunk, bits, values = self.set_aside(chunk, errors), bits[good], values.filter(pa.array(good))
        coded = values.dictionary_encode()
        return _Received(chunk, coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64), bits)

    def _bits(self, chunk: Chunk) -> tuple[Ints, Errors]:
        """Evaluate the conditions that depend on the record alone, each as a bit."""
        bits = np.zeros(len(chunk), np.int64)
        errors: Errors = {}
        for number, (definition, expr) in enumerate(zip(self._definitions, self._exprs, strict=True)):
            if definition.condition is None or definition.iterative:
                bits |= 1 << number
            else:
                mask, failed = truth(expr, definition.condition, chunk, self.task.failures)
                bits |= mask.astype(np.int64) << number
                errors |= failed
        return bits, errors

    def _advance(self, received: _Received, woken: list[bytes]) -> None:
        """Visit the keys with an open match and those with a record that can begin one."""
        keys, numbers = received.keys, received.key_numbers
        before = self._session.read(self._table, keys)
        active = np.fromiter((data is not None for data in before), np.bool_, len(keys))
        active[numbers[(received.bits & self._firsts) != 0]] = True
        rows = np.flatnonzero(active[numbers])
        rows = rows[np.argsort(numbers[rows], kind="stable")]
        visited = np.flatnonzero(active)
        bounds = np.searchsorted(numbers[rows], [*visited.tolist(), len(keys)]).tolist()
        events = self._rows(received, rows)
        records = {
            keys[number]: events[bounds[index] : bounds[index + 1]] for index, number in enumerate(visited.tolist())
        }
        others = [key for key in woken if key not in records]
        cells = [before[number] for number in visited.tolist()] + self._session.read(self._table, others)
        self._visit([*records, *others], cells, records, set(woken))

    def _rows(self, received: _Received, rows: npt.NDArray[np.intp]) -> list[tuple[Row, int, tuple[int, ...]]]:
        """Return records with their conditions and order keys. Values that are not data cannot be kept, and are set
        aside."""
        chunk = received.chunk.take(rows)
        values = plain_all(as_objects(chunk.value))
        errors = not_data(values) if isinstance(chunk.value, list) else {}
        self.task.dead_letters.add(chunk, errors, self.name, Reason.ERROR)
        topic_partitions = [(one.topic, one.partition) for one in self._input_partitions]
        topic_partitions.append(("", -1))
        columns = chunk.timestamp.tolist(), chunk.input_partition.tolist(), chunk.offset.tolist()
        orders = map(tuple, order_of(chunk).tolist())
        parts = zip(*columns, values, received.bits[rows].tolist(), orders, strict=True)
        made = [
            (Row(0, time, value, topic, partition, offset), bits, order)
            for time, number, offset, value, bits, order in parts
            for topic, partition in (topic_partitions[number],)
        ]
        # A record that was set aside satisfies nothing and is seen by no thread.
        return [
            (row, -1, order) if number in errors else (row, bits, order)
            for number, (row, bits, order) in enumerate(made)
        ]

    def _visit(
        self,
        keys: list[bytes],
        before: list[bytes | None],
        records: dict[bytes, list[tuple[Row, int, tuple[int, ...]]]],
        woken: set[bytes],
    ) -> None:
        cells: list[tuple[bytes, bytes | None, bytes | None]] = []
        dues: list[int] = []
        waiting: list[bytes] = []
        for key, data in zip(keys, before, strict=True):
            with reading_cells(self._table):
                runs = Runs.load(data)
            self._advance_key(key, runs, records.get(key, []))
            due = self._machine.next_due(runs)
            if due is not None and (runs.due is None or key in woken or due < runs.due):
                runs.due = due
                dues.append(due)
                waiting.append(key)
            after = runs.dump()
            if after != data:
                cells.append((key, after, data))
        if cells:
            self._session.write(self._table, cells)
        if dues:
            self._timers.add(np.array(dues, np.int64), waiting)

    def _advance_key(self, key: bytes, runs: Runs, records: list[tuple[Row, int, tuple[int, ...]]]) -> None:
        machine, firsts, matches = self._machine, self._firsts, self._matches
        for row, bits, order in records:
            if bits < 0 or (not runs.runs and not bits & firsts):
                continue
            if runs.runs:
                machine.expire(runs, row.time)
                matches.add_timed(key, machine)
            if not runs.runs:
                if not bits & firsts:
                    continue
                runs.count, runs.due = 0, None
            try:
                machine.accept(runs, row._replace(number=runs.count), bits)
            except Exception as error:  # noqa: BLE001 - the user's condition may raise anything
                self._set_aside(key, row, describe_error(error))
                continue
            runs.count += 1
            if machine.found:
                matches.add(key, machine, order)
            self._drop(key)
        machine.expire(runs, self._clock_ms)
        matches.add_timed(key, machine)

    def _drop(self, key: bytes) -> None:
        for start, error in self._machine.dropped:
            self._set_aside(key, start, error)
        self._machine.dropped.clear()

    def _set_aside(self, key: bytes, row: Row, error: str) -> None:
        """Set a record aside. It may be from an earlier batch, and its partition may have another number."""
        numbers = {(one.topic, one.partition): number for number, one in enumerate(self._input_partitions)}
        time = np.array([row.time], np.int64)
        partition = np.array([numbers.get((row.topic, row.partition), -1)], np.int64)
        shown = key_column(pa.array([key], pa.binary()), self._key_type)
        chunk = Chunk(shown, [row.value], time, time, partition, np.array([row.offset], np.int64))
        self.task.dead_letters.add(chunk, {0: error}, self.name, Reason.ERROR)
