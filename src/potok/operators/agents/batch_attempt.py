"""One attempt at a batch of agents: everything happens in memory, and nothing is written yet."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from potok.errors import QueryError
from potok.operators.agents.concurrent import turns_of
from potok.operators.agents.context import NO_RECORD, Running, Unfit, driving
from potok.operators.agents.drive import END, WAITING, Driven, run_now
from potok.operators.agents.prefetch import ENOUGH, Prefetch, PrefetchInput
from potok.operators.agents.record_order import RecordLocations, Records, Run
from potok.operators.agents.tables import Change, OpenTable
from potok.operators.agents.window_closing import CloseWindows
from potok.operators.core.call import Errors, describe_error
from potok.state.cell import CellDoesNotFit
from potok.topology.agents import AgentPart, Revive


class Taker:
    """The agents that consume one upstream, grouped by the form in which they see its records."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.agents: list[Driven] = []
        self._kinds: list[tuple[Revive, list[int]]] = []

    def add(self, agent: Driven, revive: Revive) -> None:
        number = len(self.agents)
        self.agents.append(agent)
        for other, numbers in self._kinds:
            if other == revive:
                numbers.append(number)
                return
        self._kinds.append((revive, [number]))

    def rows(self, run: Run) -> Iterator[tuple[int, Any, int, int, tuple[Any, ...]]]:
        """Yield row, key, time, stream time and what each agent sees."""
        start, stop, records = run.start, run.stop, self.records
        values = zip(*self._values(start, stop), strict=True)
        times, stream_times = records.times[start:stop], records.stream_times[start:stop]
        return zip(range(start, stop), records.keys[start:stop], times, stream_times, values, strict=True)

    def _values(self, start: int, stop: int) -> list[list[Any]]:
        """Return what each agent sees of some rows: its own objects."""
        column = self.records.chunk.value
        part = column[start:stop] if isinstance(column, list) else column.slice(start, stop - start)
        seen: list[list[Any]] = [[]] * len(self.agents)
        for revive, numbers in self._kinds:
            for number, values in zip(numbers, revive.several(part, len(numbers)), strict=True):
                seen[number] = values
        return seen


class Batch:
    """`opened` is an agent group that has not processed anything. A `careful` batch checks after each turn that all
    touched values are data; a `suspicious` one also treats all rows that were ever read as touched.
    """

    def __init__(
        self,
        opened: tuple[Running, dict[str, OpenTable]],
        agents: Sequence[AgentPart],
        records: list[Records | None],
        closing: CloseWindows,
        *,
        careful: bool,
        suspicious: bool = False,
    ) -> None:
        self.records, self.closing = records, closing
        self.running, self._tables = opened
        self.driven = [Driven(part) for part in agents]
        self.unfit: Errors = {}
        self.locations = RecordLocations(records)
        self._takers: dict[int, Taker] = {}
        for agent in self.driven:
            for port, revive in agent.part.inputs:
                if (found := records[port]) is not None:
                    self._takers.setdefault(port, Taker(found)).add(agent, revive)
        self._turns = turns_of(self.running, self.driven, self._look_at, careful=careful, suspicious=suspicious)
        with driving(self.running):
            run_now(self._run())
        self.changes: list[tuple[OpenTable, list[Change]]] = [
            (table, table.changes()) for table in self._tables.values()
        ]

    def forget(self) -> None:
        """Release all rows and records when they are no longer needed."""
        for table in self._tables.values():
            table.forget()
        self.changes, self.driven = [], []
        self._takers.clear()
        self.running.forget()

    async def _run(self) -> None:
        try:
            await self._records()
            await self._rest()
            await self.closing.run(self.running, self._tables.values(), self._channels, self._timeout())
            await self._rest()
            await finish_tasks(self.running, self._timeout())
            for agent in self.driven:
                self.closing.take_over(agent.errors)
            self._report_failures()
        finally:
            # Here, because pending tasks belong to this event loop.
            for agent in self.driven:
                self._turns.drop(agent)

    def _report_failures(self) -> None:
        """Report failures to callers that wait for an answer."""
        sent, before = self.running.sent, len(self.running.sent)
        failed = [(number, agent, why) for agent in self.driven for number, why in agent.errors.items()]
        for number, why in self.unfit.items():
            failed += [(number, agent, why) for agent in self._takers[self.locations[number][0]].agents]
        for number, agent, why in failed:
            if agent.part.on_failed is not None:
                self._look_at(number)
                agent.part.on_failed(agent.name, why)
        if len(sent) > before:
            sent.sort(key=lambda item: (item[1] == NO_RECORD, item[1]))

    def _timeout(self) -> float | None:
        """Return the timeout for work without a record: the longest of any agent."""
        given = [agent.part.timeout_s for agent in self.driven]
        return None if None in given else max((each for each in given if each is not None), default=None)

    async def _rest(self) -> None:
        """Wait until everything is done, and signal the end of the batch to agents that hold records back; records
        they put into channels may be held back again.
        """
        await self._turns.drain()
        while holding := [agent for agent in self.driven if agent.hand]:
            for agent in holding:
                number = agent.hand[-1]
                self._look_at(number)
                await self._turns.take(agent, number, END)
                agent.hand.clear()
                await self._channels(number)
            await self._turns.drain()

    async def _records(self) -> None:
        inputs = {port: PrefetchInput(taker.records.chunk, taker.records.keys) for port, taker in self._takers.items()}
        ahead = Prefetch(self.running.app, self._tables.values(), inputs)
        ahead.start()
        for run in self.locations.runs(ENOUGH):
            if run.number == ENOUGH:
                ahead.learn(self.locations)
            for rest in self._turns_of(run):
                await rest

    def _turns_of(self, run: Run) -> Iterator[Coroutine[Any, Any, None]]:
        """Give records to their agents, all in one call; coroutines that have to wait are yielded.

        For an agent that asks for the next record immediately, as almost all do, a turn is no more than the code
        here.
        """
        taker, running, turns = self._takers[run.port], self.running, self._turns
        agents, sent, direct, watched = taker.agents, running.sent, turns.direct, running.watched
        running.chunk = taker.records.chunk
        for number, (row, key, at, stream_time, items) in enumerate(taker.rows(run), run.number):
            running.record, running.row, running.key = number, row, key
            running.timestamp, running.stream_time = at, stream_time
            for agent, item in zip(agents, items):  # noqa: B905 - speed; each agent has its values
                if type(item) is Unfit:
                    self.unfit[number] = item.why
                    continue
                running.value, running.agent = item, agent.name
                if direct and agent.send is not None:
                    running.turn += 1
                    if running.undo:
                        running.undo = []
                    if running.held:
                        running.let_go()
                    if agent.hoisted:
                        turns.remember_for(agent)
                    before, waits_for, failed = len(sent), WAITING, None
                    try:
                        waits_for = agent.send(item)
                    except CellDoesNotFit:
                        raise
                    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - an agent may raise anything
                        failed = error
                    if waits_for is WAITING and failed is None and not (watched or agent.inlet.holding or agent.hand):
                        if not running.posted:
                            continue
                    else:
                        agent.hand.append(number)
                        yield turns.settle(agent, before, waits_for, failed)
                else:
                    yield turns.take(agent, number, item)
                yield self._channels(number)
                self._look_at(number)

    def _look_at(self, number: int) -> None:
        """Set the current record, or a window at its end."""
        if number < 0:
            self.closing.look_at(self.running, number)
            return
        port, row = self.locations[number]
        found, running = self.records[port], self.running
        assert found is not None
        running.record, running.chunk, running.row = number, found.chunk, row
        running.timestamp, running.stream_time, running.key = found.times[row], found.stream_times[row], found.keys[row]

    async def _channels(self, number: int) -> None:
        """Give values in channels to their consumers, until none is left."""
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


_logger = logging.getLogger("potok.faust")

TIMEOUT_S = 30.0
"""How long to wait for them if agents have no timeout."""

SHORT_TIMEOUT_S = 1.0
"""How long to wait for those that have not ended in time before."""

REPORT_EVERY_S = 60.0

_slow: dict[str, float] = {}
"""Tasks that did not end in time, in this process, and when that was reported."""


class LeftBehind(QueryError):
    """A table or a topic that was used by a task after its record was processed."""

    def __init__(self) -> None:
        super().__init__(
            "a task started by an agent used a table or a topic after all records were processed",
            hint="await it in the agent and use its result there; or send to another agent",
        )


class _NoRecord:
    """Replaces the running agent group when there is no current record."""

    def __getattr__(self, name: str) -> NoReturn:
        raise LeftBehind


async def finish_tasks(running: Running, timeout_s: float | None) -> None:
    """Wait for all tasks of this event loop, up to the timeout of agents, then cancel those that are not done."""
    if not _left():
        return
    running.stand_in = _NoRecord()
    await _wait(TIMEOUT_S if timeout_s is None else timeout_s, slow=False)
    await _wait(SHORT_TIMEOUT_S, slow=True)
    running.stand_in = None


async def _wait(timeout_s: float, *, slow: bool) -> None:
    """Wait for tasks that ended in time before, or for the others."""
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_s
    while left := {task for task in _left() if (_name(task) in _slow) == slow}:
        done, waiting = await asyncio.wait(left, timeout=max(0.0, until - loop.time()))
        _report_failures(done)
        for task in done:
            _slow.pop(_name(task), None)
        if loop.time() >= until:
            _give_up(waiting)
            return


def _left() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


def _name(task: asyncio.Task[Any]) -> str:
    return str(getattr(task.get_coro(), "__qualname__", "a task"))


def _report_failures(done: Iterable[asyncio.Task[Any]]) -> None:
    for task in done:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            message = describe_error(error)
            _logger.error("%s, started by an agent and not awaited, failed: %s", _name(task), message)


def _give_up(waiting: Iterable[asyncio.Task[Any]]) -> None:
    for name in sorted({_name(task) for task in waiting}):
        if time.monotonic() - _slow.get(name, -REPORT_EVERY_S) < REPORT_EVERY_S:
            continue
        _slow[name] = time.monotonic()
        _logger.warning(
            "%s, started by an agent and not awaited, is still running, and is cancelled with its batch. Await "
            "it in the agent; move work that never ends to a function with @app.task",
            name,
        )
