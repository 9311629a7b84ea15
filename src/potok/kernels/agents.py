"""Agents at work: all records of a batch in their order, each given to the agents that take it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from potok.kernels import agents_running
from potok.kernels.agents_ahead import ENOUGH, Ahead, AheadInput
from potok.kernels.agents_closing import CloseWindows
from potok.kernels.agents_drive import END, Driven, Turns, run_now
from potok.kernels.agents_output import changed_rows, sent_chunks
from potok.kernels.agents_running import Running, Unfit
from potok.kernels.agents_tables import OpenTable
from potok.kernels.agents_windows import OpenWindows
from potok.kernels.call import Errors, python_rows
from potok.kernels.chunk import Chunk, gathered
from potok.kernels.dead_letters import Lane, Reason
from potok.kernels.operator import Operator, Receiver, Task
from potok.state.codec import StateNotData
from potok.state.session import StateSession
from potok.topology.agents import AgentPart, Crew
from potok.topology.nodes import Agents


class Input(Operator):
    """Takes the records of one upstream."""

    counted = False

    def __init__(self, name: str, task: Task, source: str) -> None:
        super().__init__(name, task)
        self.source = source
        self.chunks: list[Chunk] = []

    def process(self, chunk: Chunk) -> None:
        self.task.records_in[self.name] += len(chunk)
        self.chunks.append(chunk)


@dataclass(slots=True)
class Records:
    """The records of one upstream, as lists."""

    chunk: Chunk
    keys: list[Any]
    times: list[int]
    stream_times: list[int]

    @staticmethod
    def of(chunks: list[Chunk]) -> Records | None:
        if not chunks:
            return None
        chunk = gathered(chunks)
        return Records(chunk, python_rows(chunk.key), chunk.timestamp.tolist(), chunk.stream_time.tolist())


class DriveAgents(Operator):
    """Drives the agents of a crew. The outputs are its topics, and behind them its tables."""

    def __init__(
        self, node: Agents, task: Task, session: StateSession, clock_ms: int, lanes: list[Lane], shown: tuple[str, ...]
    ) -> None:
        """`shown` are the tables whose changes go on to others."""
        super().__init__(node.name, task)
        self._crew: Crew = node.crew
        self._session, self._clock_ms, self._lanes, self._shown = session, clock_ms, lanes, shown
        self._inputs = [Input(node.name, task, source.name) for source in node.sources]
        self._cells = self._open(self._running())
        self.outputs: dict[int, list[Receiver]] = {}

    def port(self, index: int) -> Receiver:
        return self._inputs[index]

    @property
    def state_tables(self) -> list[str]:
        return [name for table in self._cells.values() for name in table.tables]

    def next_due(self) -> int | None:
        return self._next(wall=False)

    def next_alarm(self) -> int | None:
        return self._next(wall=True)

    def _next(self, *, wall: bool) -> int | None:
        windows = [table for table in self._cells.values() if isinstance(table, OpenWindows)]
        due = [table.next_due() for table in windows if table.part.wall == wall]
        return min((at for at in due if at is not None), default=None)

    def _running(self) -> Running:
        topics = {topic.name: number for number, topic in enumerate(self._crew.topics)}
        running = Running(self._crew.app, topics, self.task.processing_time_ms, self._lanes)
        running.elsewhere = dict(self._crew.elsewhere)
        return running

    def _open(self, running: Running) -> dict[str, OpenTable]:
        kinds = [(part, OpenTable if part.window is None else OpenWindows) for part in self._crew.tables]
        return {part.name: kind(part, running, self._session, spread=self._crew.spread) for part, kind in kinds}

    def finish(self) -> None:
        records = [Records.of(input_.chunks) for input_ in self._inputs]
        closing = CloseWindows(self._clock_ms, self.task.processing_time_ms)
        if not any(records) and not closing.is_due(self._cells.values()):
            return
        try:
            batch = _Batch(self, records, closing, careful=False)
        except StateNotData:
            # Something was changed in place into what is no data; who did it is found by looking after each turn.
            batch = _Batch(self, records, closing, careful=True)
        self._settle(batch)

    def _settle(self, batch: _Batch) -> None:
        for table, changes in batch.changes:
            table.write(changes)
        for topic, chunk in sent_chunks(batch.running.sent, batch.records, batch.places):
            self._push(topic, chunk)
        for number, (table, changes) in enumerate(batch.changes):
            if table.name in self._shown and changes:
                self._push(len(self._crew.topics) + number, changed_rows(table, changes))
        for agent in batch.driven:
            self._set_aside(agent.part.name, batch, agent.errors, Reason.ERROR)
        self._set_aside("", batch, batch.unfit, Reason.DECODE)
        letters = batch.closing.letters()
        if letters is not None:
            self.set_aside(*letters)

    def _set_aside(self, step: str, batch: _Batch, errors: Errors, reason: Reason) -> None:
        by_input: dict[int, Errors] = {}
        for number, why in errors.items():
            port, row = batch.places[number]
            by_input.setdefault(port, {})[row] = why
        for port, rows in by_input.items():
            found = batch.records[port]
            assert found is not None
            self.task.dead_letters.add(found.chunk, rows, step or self._inputs[port].source, reason)

    def _push(self, output: int, chunk: Chunk) -> None:
        self.task.records_out[self.name] += len(chunk)
        for receiver in self.outputs.get(output, []):
            receiver.push(chunk)

    def opened(self) -> tuple[Running, dict[str, OpenTable]]:
        """A crew that has done nothing yet."""
        running = self._running()
        running.tables = self._open(running)
        return running, running.tables

    @property
    def agents(self) -> tuple[AgentPart, ...]:
        return self._crew.agents


class _Batch:
    """One try at a batch: everything is done in memory, and nothing is written yet."""

    def __init__(
        self, operator: DriveAgents, records: list[Records | None], closing: CloseWindows, *, careful: bool
    ) -> None:
        self.records, self.closing = records, closing
        self.running, self._tables = operator.opened()
        self.driven = [Driven(part) for part in operator.agents]
        self.unfit: Errors = {}
        self.places = list(_in_order(records))
        self._takers: dict[int, list[tuple[Driven, list[Any]]]] = {}
        for agent in self.driven:
            for port, revive in agent.part.inputs:
                if (found := records[port]) is not None:
                    self._takers.setdefault(port, []).append((agent, revive(found.chunk.value)))
        self._turns = Turns(self.running, careful=careful)
        agents_running.current = self.running
        try:
            run_now(self._run())
        finally:
            agents_running.current = None
        self.changes = [(table, table.changes()) for table in self._tables.values()]

    async def _run(self) -> None:
        try:
            await self._records()
            await self.closing.run(self.running, self._tables.values())
        finally:
            # Here, for what is left of them belongs to this event loop.
            for agent in self.driven:
                self._turns.drop(agent)

    async def _records(self) -> None:
        ahead = Ahead(self.running.app, self._tables.values(), self._ahead_inputs())
        ahead.begin()
        for number in range(len(self.places)):
            if number == ENOUGH:
                ahead.learn(self.places)
            await self._record(number)
        for agent in self.driven:
            if agent.hand:
                self._look_at(agent.hand[-1])
                await self._turns.take(agent, agent.hand[-1], END)
                await self._channels(self.running.record)

    def _look_at(self, number: int) -> tuple[int, int]:
        """Set what is at hand to a record."""
        port, row = self.places[number]
        found, running = self.records[port], self.running
        assert found is not None
        running.record, running.chunk, running.row = number, found.chunk, row
        running.timestamp, running.stream_time, running.key = found.times[row], found.stream_times[row], found.keys[row]
        return port, row

    async def _record(self, number: int) -> None:
        running = self.running
        port, row = self._look_at(number)
        for agent, values in self._takers[port]:
            item = values[row]
            if type(item) is Unfit:
                self.unfit[number] = item.why
                continue
            running.value = item
            await self._turns.take(agent, number, item)
            if running.posted:
                await self._channels(number)

    async def _channels(self, number: int) -> None:
        """Give what was put into channels to who takes it, until nothing is left."""
        running = self.running
        while running.posted:
            posted, running.posted = running.posted, []
            for channel, item in posted:
                for agent in self.driven:
                    if agent.part.channel == channel:
                        running.value = item
                        before, running.posted = running.posted, []
                        await self._turns.take(agent, number, item)
                        running.posted = [*before, *running.posted]

    def _ahead_inputs(self) -> dict[int, AheadInput]:
        found: dict[int, AheadInput] = {}
        for port, takers in self._takers.items():
            records = self.records[port]
            assert records is not None
            found[port] = AheadInput(records.keys, records.times, takers[0][1])
        return found


def _in_order(records: list[Records | None]) -> Iterator[tuple[int, int]]:
    """The upstream and the row of each record, by their positions; one that comes by several, by these."""
    there = [(port, found.chunk) for port, found in enumerate(records) if found is not None]
    if len(there) == 1:
        port, chunk = there[0]
        yield from ((port, row) for row in range(len(chunk)))
    elif there:
        ports = np.concatenate([np.full(len(chunk), port) for port, chunk in there])
        rows = np.concatenate([np.arange(len(chunk)) for _, chunk in there])
        lanes, offsets = (np.concatenate([part for _, part in both]) for both in _positions(there))
        order = np.lexsort((ports, offsets, lanes))
        yield from zip(ports[order].tolist(), rows[order].tolist(), strict=True)


def _positions(there: list[tuple[int, Chunk]]) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
    return [(port, chunk.lane) for port, chunk in there], [(port, chunk.offset) for port, chunk in there]
