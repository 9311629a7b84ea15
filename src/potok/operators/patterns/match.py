"""Match patterns: conditions are evaluated as columns, and only keys that a pattern can concern are visited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

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
from potok.operators.patterns.machine import MOST_THREADS, ConditionRaised, Machine
from potok.operators.patterns.matches import Matches
from potok.operators.patterns.neighbours import Neighbours
from potok.operators.patterns.open_runs import Runs
from potok.operators.patterns.runs import Row
from potok.operators.patterns.start_filter import StartFilter, can_filter
from potok.operators.patterns.stored_runs import StoredRuns
from potok.operators.patterns.ties import in_tie_order
from potok.operators.windows.windows import timers_of
from potok.records.keys import encode_each_key
from potok.records.rows import converter_of
from potok.state.session import StateSession
from potok.topology.inference.patterns import shifted_type
from potok.topology.inference.step import Step
from potok.topology.nodes import Match
from potok.topology.patterns.program import ACCEPT, compile_pattern
from potok.topology.patterns.tree import SkipTo

ALWAYS = 1 << 61
"""The condition that every record satisfies, if every record can begin something."""
AT_START = 1 << 60
"""The condition that the first record of a key satisfies."""

TIMEOUTS = 0
"""The output of partial matches whose time limit has passed."""


Mask = npt.NDArray[np.bool_]


class _Records(NamedTuple):
    """Records by key, in order. `starts` may begin a match, and of those `begins` need to be started."""

    times: list[int]
    values: list[Any]
    input_partitions: list[int]
    offsets: list[int]
    bits: list[int]
    starts: list[bool]
    begins: list[bool]
    order: Ints


NO_RECORDS = _Records([], [], [], [], [], [], [], np.zeros((0, 0), np.int64))


@dataclass(slots=True)
class _Received:
    """The records of a batch in order, with the number of the key of each and the conditions that it satisfies."""

    chunk: Chunk
    keys: list[bytes]
    key_numbers: npt.NDArray[np.int64]
    bits: Ints


def _bits_of(variables: Iterable[int | None]) -> int:
    found = 0
    for number in variables:
        found |= 0 if number is None else 1 << number
    return found


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
        watermark_ms: int,
        input_partitions: list[InputPartition],
    ) -> None:
        super().__init__(node.name, task)
        self._key_type, self._session, self._watermark_ms = upstream.key, session, watermark_ms
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
            numbered=node.numbered,
            unmatched=node.unmatched,
        )
        self._shows_timeouts = node.shows_timeouts
        self._max_runs, self._within_ms = node.max_runs, pattern.within_ms
        self._filter: StartFilter | None = None
        if can_filter(program, iterative, unmatched=node.unmatched):
            merged = node.after.skip is not SkipTo.NO_SKIP
            self._filter = StartFilter(program, pattern.within_ms, None if merged else MOST_THREADS)
        # The last one stands for a record without a position.
        self._topic_partitions = [*((one.topic, one.partition) for one in input_partitions), ("", -1)]
        self._ties = node.ties
        begins = (*program.begin, *program.begin_first)
        self._firsts = _bits_of(program.states[state].variable for state in begins)
        if node.unmatched or ACCEPT in begins:
            self._firsts |= ALWAYS
        self._neighbours: Neighbours | None = None
        if node.looks_around:
            assert upstream.value is not None
            self._neighbours = Neighbours(node, upstream.key, upstream.value, session, input_partitions)
        self._stored = StoredRuns(node.name, session)
        self._timers = WakeIndex(timers_of(node.name), session)
        row_type = upstream.value
        if row_type is not None and node.shifts:
            row_type = shifted_type(row_type, node.shifts)
        self._matches = Matches(node, program.variables, row_type, value_type, task)
        self._chunks: list[Chunk] = []

    @property
    def state_tables(self) -> list[str]:
        neighbours = [] if self._neighbours is None else [self._neighbours.table]
        return [*self._stored.tables, self._timers.table, *neighbours]

    def next_due(self) -> int | None:
        return self._timers.next_due()

    def process(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)

    def finish(self) -> None:
        self._machine.reports_over = self._shows_timeouts or TIMEOUTS in self.outputs
        received = self._received()
        woken = self._timers.due(self._watermark_ms)
        if self._neighbours is not None:
            self._neighbours.look(woken)
        if received is not None:
            self._advance(received, woken)
        elif woken:
            self._visit(woken, self._stored.heads(woken), NO_RECORDS, {}, set(woken))
        self._timers.flush(self._watermark_ms)
        receivers = self.outputs.get(TIMEOUTS, [])
        for over, chunk in self._matches.chunks(self._key_type):
            if over:
                self.task.records_out[self.name] += len(chunk)
                for receiver in receivers:
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
        coded = values.dictionary_encode()
        keys, numbers = coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)
        chunk = in_tie_order(chunk, numbers, self._ties)
        first: Ints | int = 0
        if self._neighbours is not None:
            extended = self._neighbours.extend(chunk, keys, numbers)
            chunk, numbers = extended.chunk, extended.key_numbers
            first = np.where(extended.first, AT_START, 0)
        bits, errors = self._bits(chunk)
        bits |= first | (self._firsts & ALWAYS)
        if errors:
            good = all_but(errors, len(chunk))
            chunk, bits, numbers = self.set_aside(chunk, errors), bits[good], numbers[good]
        return _Received(chunk, keys, numbers, bits)

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
        """Visit the keys with an open match and those with a record that begins one."""
        keys, numbers = received.keys, received.key_numbers
        before = self._stored.heads(keys)
        by_key = np.argsort(numbers, kind="stable")
        numbers, bits, times = numbers[by_key], received.bits[by_key], received.chunk.timestamp[by_key]
        starts = (bits & self._firsts) != 0
        begins = starts
        if self._filter is not None and not isinstance(received.chunk.value, list):
            few = np.bincount(numbers, minlength=len(keys)) <= self._max_runs
            begins = starts & ~(self._filter.hopeless(starts, bits, numbers, times) & few[numbers])
        active = np.fromiter((data is not None for data in before), np.bool_, len(keys))
        active[numbers[begins]] = True
        seen = active[numbers]
        visited = np.flatnonzero(active)
        bounds = np.searchsorted(numbers[seen], [*visited.tolist(), len(keys)]).tolist()
        records = self._records(received, by_key[seen], starts[seen], begins[seen])
        spans = {keys[number]: (bounds[index], bounds[index + 1]) for index, number in enumerate(visited.tolist())}
        others = [key for key in woken if key not in spans]
        cells = [before[number] for number in visited.tolist()] + self._stored.heads(others)
        self._visit([*spans, *others], cells, records, spans, set(woken))

    def _records(self, received: _Received, rows: npt.NDArray[np.intp], starts: Mask, begins: Mask) -> _Records:
        """Return records as Python objects. Values that are not data cannot be kept, and are set aside: such a record
        satisfies nothing and is seen by no thread."""
        chunk = received.chunk.take(rows)
        values = plain_all(as_objects(chunk.value))
        errors = not_data(values) if isinstance(chunk.value, list) else {}
        self.task.dead_letters.add(chunk, errors, self.name, Reason.ERROR)
        bits = received.bits[rows]
        bits[list(errors)] = -1
        return _Records(
            chunk.timestamp.tolist(),
            values,
            chunk.input_partition.tolist(),
            chunk.offset.tolist(),
            bits.tolist(),
            starts.tolist(),
            begins.tolist(),
            order_of(chunk),
        )

    def _visit(
        self,
        keys: list[bytes],
        before: list[bytes | None],
        records: _Records,
        spans: dict[bytes, tuple[int, int]],
        woken: set[bytes],
    ) -> None:
        dues: list[int] = []
        waiting: list[bytes] = []
        loaded = self._stored.load(keys, before, self._machine.due_of)
        self._read_ahead(keys, loaded, records, spans)
        for key, data, runs in zip(keys, before, loaded, strict=True):
            awaited = None if self._neighbours is None else self._neighbours.waiting.get(key)
            self._advance_key(key, runs, records, spans.get(key, (0, 0)), awaited)
            due = self._machine.next_due(runs)
            if awaited is not None:
                # Whatever ends here is decided with the awaited record, which visits the key again.
                runs.due = None
            elif due is not None and (runs.due is None or key in woken or due < runs.due):
                runs.due = due
                dues.append(due)
                waiting.append(key)
            self._stored.put(key, runs, data)
        self._stored.write()
        if dues:
            self._timers.add(np.array(dues, np.int64), waiting)

    def _read_ahead(
        self, keys: list[bytes], loaded: list[Runs], records: _Records, spans: dict[bytes, tuple[int, int]]
    ) -> None:
        """Read the segments that the records concern, or that are over, at once."""
        wanted = []
        for key, runs in zip(keys, loaded, strict=True):
            if runs.in_segments:
                start, end = spans.get(key, (0, 0))
                different = {bits for bits in records.bits[start:end] if bits >= 0}
                until_ms = max([self._watermark_ms, *records.times[start:end][-1:]])
                quiet = partial(self._machine.quiet_for, different)
                wanted += [(key, runs, one) for one in runs.wanted(quiet, self._within_ms, until_ms)]
        self._stored.supply(wanted)

    def _advance_key(
        self, key: bytes, runs: Runs, records: _Records, span: tuple[int, int], awaited: int | None
    ) -> None:
        machine, matches = self._machine, self._matches
        start, end = span
        begins = records.begins if runs.size + end - start <= self._max_runs else records.starts
        for index in range(start, end):
            bits, begin = records.bits[index], begins[index]
            if bits < 0 or not (begin or runs.size):
                continue
            time = records.times[index]
            if runs.size:
                machine.expire(runs, time)
                if machine.found:
                    matches.add_timed(key, machine)
            if not runs.size:
                if not begin:
                    continue
                runs.count, runs.covered, runs.due = 0, 0, None
            topic, partition = self._topic_partitions[records.input_partitions[index]]
            row = Row(runs.count, time, records.values[index], topic, partition, records.offsets[index])
            try:
                machine.accept(runs, row, bits, begin=begin, at_start=bits & AT_START != 0)
            except ConditionRaised as raised:
                self._set_aside(key, row, describe_error(raised.error))
                continue
            runs.count += 1
            if machine.found:
                matches.add(key, machine, tuple(records.order[index].tolist()))
            if machine.dropped:
                self._drop(key)
        machine.expire(runs, self._watermark_ms if awaited is None else min(awaited, self._watermark_ms))
        if machine.found:
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
        decoded_keys = key_column(pa.array([key], pa.binary()), self._key_type)
        chunk = Chunk(decoded_keys, [row.value], time, time, partition, np.array([row.offset], np.int64))
        self.task.dead_letters.add(chunk, {0: error}, self.name, Reason.ERROR)
