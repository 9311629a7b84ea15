"""Agents: process all records of a batch in order, and give each to the agents that consume it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from potok.log.broker import LOG_SCHEMA
from potok.operators.agents.batch_attempt import Batch
from potok.operators.agents.context import NO_RECORD, Headers, Running, Sent
from potok.operators.agents.record_order import RecordLocations, Records
from potok.operators.agents.row_changes import NoCopy
from potok.operators.agents.tables import Change, OpenTable
from potok.operators.agents.window_closing import CloseWindows
from potok.operators.agents.windows import OpenWindows
from potok.operators.aggregates.aggregates import change
from potok.operators.cells.cell_codec import decode_row
from potok.operators.core.call import Errors
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk
from potok.operators.core.dead_letters import InputPartition, Reason
from potok.operators.core.operator import Operator, Receiver, SeveralOutputs, Task
from potok.operators.core.record_order import LAST, WIDTH, by_position
from potok.state.codec import StateNotData
from potok.state.session import StateSession
from potok.topology.agents import AgentGroup
from potok.topology.nodes import Agents


class Input(Operator):
    """Receive the records of one upstream."""

    counted = False

    def __init__(self, name: str, task: Task, source: str) -> None:
        super().__init__(name, task)
        self.source = source
        self.chunks: list[Chunk] = []

    def process(self, chunk: Chunk) -> None:
        self.task.records_in[self.name] += len(chunk)
        self.chunks.append(chunk)


class DriveAgents(SeveralOutputs):
    """Run the agents of a group. The outputs are its topics, followed by its tables."""

    def __init__(
        self,
        node: Agents,
        task: Task,
        session: StateSession,
        watermark_ms: int,
        input_partitions: list[InputPartition],
        emitting: tuple[str, ...],
    ) -> None:
        """`emitting` are the tables whose changes have downstream steps."""
        super().__init__(node.name, task)
        self._agent_group: AgentGroup = node.agent_group
        self._session, self._watermark_ms, self._input_partitions, self._emitting = (
            session,
            watermark_ms,
            input_partitions,
            emitting,
        )
        self._inputs = [Input(node.name, task, source.name) for source in node.sources]
        self._cells = self._open(self._running())

    def port(self, index: int) -> Receiver:
        return self._inputs[index]

    @property
    def state_tables(self) -> list[str]:
        return [name for table in self._cells.values() for name in table.tables]

    def next_due(self) -> int | None:
        return self._next(wall=False)

    def next_timer(self) -> int | None:
        return self._next(wall=True)

    def _next(self, *, wall: bool) -> int | None:
        windows = [table for table in self._cells.values() if isinstance(table, OpenWindows)]
        due = [table.next_due() for table in windows if table.part.wall == wall]
        return min((at for at in due if at is not None), default=None)

    def _running(self) -> Running:
        topics = {topic.name: number for number, topic in enumerate(self._agent_group.topics)}
        running = Running(self._agent_group.app, topics, self.task.processing_time_ms, self._input_partitions)
        running.elsewhere = dict(self._agent_group.elsewhere)
        return running

    def _open(self, running: Running) -> dict[str, OpenTable]:
        kinds = [(part, OpenTable if part.window is None else OpenWindows) for part in self._agent_group.tables]
        return {part.name: kind(part, running, self._session, spread=self._agent_group.spread) for part, kind in kinds}

    def finish(self) -> None:
        records = [Records.of(input_.chunks) for input_ in self._inputs]
        closing = CloseWindows(self._watermark_ms, self.task.processing_time_ms)
        if not any(records) and not closing.is_due(self._cells.values()):
            return
        batch = self._tried(records, closing)
        self._settle(batch)
        # These objects form reference cycles, which the garbage collector would traverse with every row.
        batch.forget()
        for input_ in self._inputs:
            input_.chunks = []

    def _tried(self, records: list[Records | None], closing: CloseWindows) -> Batch:
        try:
            return Batch(self._opened(), self._agent_group.agents, records, closing, careful=False)
        except (StateNotData, NoCopy):
            # A value was changed in place to something that is not data: the agent is found by a check after each
            # turn. Or an agent failed after touching a row that is too large to be copied each time.
            pass
        try:
            return Batch(self._opened(), self._agent_group.agents, records, closing, careful=True)
        except StateNotData:
            # None of the agents that had read that row.
            return Batch(self._opened(), self._agent_group.agents, records, closing, careful=True, suspicious=True)

    def _settle(self, batch: Batch) -> None:
        for table, changes in batch.changes:
            table.write(changes)
        for topic, chunk in sent_chunks(batch.running.sent, batch.records, batch.locations):
            self._push(topic, chunk)
        for number, (table, changes) in enumerate(batch.changes):
            if table.name in self._emitting and changes:
                self._push(len(self._agent_group.topics) + number, changed_rows(table, changes))
        for agent in batch.driven:
            self._set_aside(agent.part.name, batch, agent.errors, Reason.ERROR)
        self._set_aside("", batch, batch.unfit, Reason.DECODE)
        dead_letters = batch.closing.dead_letters()
        if dead_letters is not None:
            self.set_aside(*dead_letters)

    def _set_aside(self, step: str, batch: Batch, errors: Errors, reason: Reason) -> None:
        by_input: dict[int, Errors] = {}
        for number, why in errors.items():
            port, row = batch.locations[number]
            by_input.setdefault(port, {})[row] = why
        for port, rows in by_input.items():
            found = batch.records[port]
            assert found is not None
            self.task.dead_letters.add(found.chunk, rows, step or self._inputs[port].source, reason)

    def _push(self, output: int, chunk: Chunk) -> None:
        self.task.records_out[self.name] += len(chunk)
        for receiver in self.outputs.get(output, []):
            receiver.push(chunk)

    def _opened(self) -> tuple[Running, dict[str, OpenTable]]:
        """Return an agent group that has not processed anything."""
        running = self._running()
        running.tables = self._open(running)
        return running, running.tables


_HEADERS = LOG_SCHEMA.field("headers").type


def sent_chunks(
    sent: list[Sent], records: Sequence[Records | None], locations: RecordLocations
) -> Iterator[tuple[int, Chunk]]:
    """Yield what was sent to each topic, in the order of the records that led to it; output without a record comes
    last."""
    by_topic: dict[int, list[Sent]] = {}
    for item in sent:
        by_topic.setdefault(item[0], []).append(item)
    for topic, mine in sorted(by_topic.items()):
        yield topic, _chunk(mine, records, locations)


def _chunk(sent: list[Sent], records: Sequence[Records | None], locations: RecordLocations) -> Chunk:
    _, numbers, keys, values, given, headers = zip(*sent, strict=True)
    led = np.array(numbers, np.int64)
    times, stream_times, input_partitions, offsets = (np.empty(len(sent), np.int64) for _ in range(4))
    ports = np.where(led == NO_RECORD, NO_RECORD, locations.ports[led] if len(locations) else NO_RECORD)
    for port, found in enumerate(records):
        mine = np.flatnonzero(ports == port)
        if found is not None and len(mine):
            rows = locations.rows[led[mine]]
            times[mine], stream_times[mine] = found.chunk.timestamp[rows], found.chunk.stream_time[rows]
            input_partitions[mine], offsets[mine] = found.chunk.input_partition[rows], found.chunk.offset[rows]
    made = np.flatnonzero(led == NO_RECORD)
    input_partitions[made], offsets[made] = NO_INPUT_PARTITION, made
    for number in _with_explicit_time(given):
        at = given[number]
        times[number] = at
        if led[number] == NO_RECORD:
            stream_times[number] = at
    return Chunk(
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        times,
        stream_times,
        input_partitions,
        offsets,
        headers=_headers(headers),
        order=_order(input_partitions, offsets),
    )


def _with_explicit_time(given: Sequence[int | None]) -> list[int]:
    """Return those that were sent with an explicit time, including all without a record."""
    if given.count(None) == len(given):
        return []
    return [number for number, at in enumerate(given) if at is not None]


def _order(input_partitions: Any, offsets: Any) -> Any:
    made = input_partitions == NO_INPUT_PARTITION
    if not made.any():
        return None
    order = by_position(input_partitions, offsets)
    order[made, : WIDTH - 1] = LAST
    order[made, WIDTH - 1] = offsets[made]
    return order


def _headers(given: Sequence[Headers | None]) -> pa.Array | None:
    if given.count(None) == len(given):
        return None
    rows = [None if each is None else [{"name": name, "value": data} for name, data in each] for each in given]
    return pa.array(rows, _HEADERS)


def changed_rows(table: OpenTable, changes: list[Change]) -> Chunk:
    """Return the changes of a table: its rows before and after."""
    ordered = sorted(changes, key=lambda item: item[0].key)
    times = np.array([entry.time for entry, _ in ordered], np.int64)
    return change(
        [_render_key(table, entry.key) for entry, _ in ordered],
        [None if data is None else decode_row(data)[1] for _, data in ordered],
        [None if entry.data is None else decode_row(entry.data)[1] for entry, _ in ordered],
        times,
        times,
    )


def _render_key(table: OpenTable, cell: bytes) -> Any:
    if isinstance(table, OpenWindows):
        key, start, end = table.bounds_of(cell)
        return {"key": key, "start": start, "end": end}
    return table.key_of(cell)
