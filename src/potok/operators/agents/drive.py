"""Driving the coroutines of agents by hand: one `send` for each record, and no event loop but for what really waits.

An agent asks its inlet for the next record, which suspends it with WAITING; all that it awaits of ours (sends, tables)
is done at once, so that everything between two records is one call. What an agent awaits of the outside world comes up
as a future of asyncio, and is awaited here under a timeout while the agent sleeps.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import types
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any

from potok.operators.agents.context import Running
from potok.operators.agents.row_changes import Entry
from potok.operators.agents.values import SETTLED
from potok.operators.agents.watched_values import check_watched
from potok.operators.core.call import describe_error
from potok.state.cell_mismatch import CellDoesNotFit
from potok.state.codec import dump_state
from potok.topology.agents import AgentPart

WAITING: Any = object()
"""What an agent that asks for a record is suspended with."""

END: Any = object()
"""What an agent is given that holds records back, when there are no more in its batch."""

Failure = Exception | asyncio.CancelledError

_logger = logging.getLogger("potok.faust")


@types.coroutine
def next_item() -> Generator[Any, Any, Any]:
    return (yield WAITING)


class Inlet:
    """Where an agent gets its records. Who is `holding` has taken some that it has not dealt with yet."""

    __slots__ = ("holding",)

    def __init__(self) -> None:
        self.holding = False

    def __aiter__(self) -> Inlet:
        return self

    @types.coroutine
    def __anext__(self) -> Generator[Any, Any, Any]:
        return (yield WAITING)


@dataclass(slots=True)
class Driven:
    """An agent at work. `hand` are the numbers of the records that it was given and has not dealt with; `send` gives
    one to a coroutine that asks for it."""

    part: AgentPart
    inlet: Inlet = field(default_factory=Inlet)
    coroutine: Coroutine[Any, Any, Any] | None = None
    send: Callable[[Any], Any] | None = None
    hand: list[int] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)
    hoisted: list[Entry] = field(default_factory=list)
    """The rows that it has looked up before its loop, and may change with any record."""
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.part.name

    async def begin(self) -> None:
        """Begin the function of the agent, and go on until it asks for a record."""
        self.inlet = Inlet()
        self.coroutine = self.part.begin(self.inlet)
        try:
            waits_for = self.coroutine.send(None)
        except StopIteration as ended:
            self.coroutine = None
            raise RuntimeError(f'agent "{self.part.name}" ended without asking for a record') from ended
        if waits_for is not WAITING:
            await self.wait(waits_for)
        if self.coroutine is None:
            raise RuntimeError(f'agent "{self.part.name}" ended without asking for a record')
        self.send = self.coroutine.send

    async def wait(self, waits_for: Any) -> None:
        """Wait for what the agent waits for, until it asks for a record or ends."""
        assert self.coroutine is not None
        async with asyncio.timeout(self.part.timeout_s):
            if await _until_waiting(self.coroutine, waits_for):
                self.coroutine = self.send = None

    def drop(self) -> None:
        """Close the coroutine."""
        coroutine, self.coroutine, self.send = self.coroutine, None, None
        if coroutine is not None:
            with contextlib.suppress(Exception):
                coroutine.close()


@types.coroutine
def _until_waiting(coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, bool]:
    """Hand what an agent waits for on to the event loop, until it asks for a record; whether it ended instead."""
    while waits_for is not WAITING:
        try:
            got, failed = (yield waits_for), None
        except BaseException as error:  # noqa: BLE001 - a future that failed, or a timeout: the agent hears of it
            got, failed = None, error
        try:
            waits_for = coroutine.send(got) if failed is None else coroutine.throw(failed)
        except StopIteration:
            return True
    return False


class Turns:
    """Gives records to agents, each at its turn, so that one who fails leaves no trace."""

    def __init__(self, running: Running, *, careful: bool, suspicious: bool = False) -> None:
        """Who is `careful` looks after each turn whether all that it touched is data. Who is `suspicious` takes each
        row that was ever at hand for touched, since agents may keep them in their variables."""
        self._running, self._careful, self._suspicious = running, careful, suspicious
        running.copies_all = careful or type(self) is not Turns
        self.direct = not careful and type(self) is Turns
        """Whether nothing needs to be done between two records."""

    async def take(self, agent: Driven, number: int, item: Any) -> None:
        """Give a record, by its number among all of the batch, to an agent."""
        sent = self._running.begin_turn()
        self._running.agent = agent.part.name
        if item is not END:
            agent.hand.append(number)
        try:
            if agent.send is None:
                await agent.begin()
                agent.hoisted = [entry for entry, *_ in self._running.undo if type(entry.value) not in SETTLED]
            self.remember_for(agent)
            assert agent.send is not None
            waits_for = agent.send(item)
        except CellDoesNotFit:
            raise
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - an agent may raise anything
            await self.settle(agent, sent, error=error)
        else:
            await self.settle(agent, sent, waits_for)

    def remember_for(self, agent: Driven) -> None:
        """Remember what an agent may change without asking for it."""
        for entry in agent.hoisted:
            entry.table.value_of(entry)
        if self._suspicious:
            for table in self._running.tables.values():
                table.remember_all()

    async def settle(
        self, agent: Driven, sent: int, waits_for: Any = WAITING, error: BaseException | None = None
    ) -> None:
        """What comes after a record was given, be it that the agent waits, has failed or has ended."""
        try:
            if error is not None:
                raise error
            if waits_for is not WAITING:
                await agent.wait(waits_for)
            self._check()
        except StopIteration:
            # It ended, and begins again with the next record.
            agent.coroutine = agent.send = None
            agent.hand.clear()
        except CellDoesNotFit:
            raise
        except (Exception, asyncio.CancelledError) as failure:  # noqa: BLE001 - an agent may raise anything
            await self._fail(agent, failure, sent)
        else:
            if not agent.inlet.holding:
                agent.hand.clear()

    async def _fail(self, agent: Driven, error: BaseException, sent: int) -> None:
        self._running.take_back(sent)
        text = describe_error(error)
        agent.errors |= dict.fromkeys(agent.hand, text)
        agent.hand.clear()
        self.drop(agent)
        await self._tell(agent, error)

    async def _tell(self, agent: Driven, error: BaseException) -> None:
        """Tell who wants to know that an agent has failed, in a turn of its own: if that fails too, it leaves no trace
        but in the log. The record is a dead letter anyway."""
        if agent.part.on_error is None:
            return
        sent = self._running.begin_turn()
        try:
            async with asyncio.timeout(agent.part.timeout_s):
                told = agent.part.on_error(agent.part.name, error)
                if isawaitable(told):
                    await told
            self._check()
        except Exception as failure:  # noqa: BLE001 - the user's function may raise anything
            self._running.take_back(sent)
            _logger.error('on_error of agent "%s" has failed: %s', agent.part.name, describe_error(failure))

    async def drain(self) -> None:
        """Wait until all records that were given are done, which they are."""

    def drop(self, agent: Driven) -> None:
        """End an agent. What it does on the way out, in a `finally`, counts no more: it is not done for a record."""
        sent = self._running.begin_turn()
        agent.drop()
        self._running.take_back(sent)

    def _check(self) -> None:
        """Raise if something was changed in place that may not be; if careful, also if what was touched is no data."""
        if self._running.watched:
            check_watched(self._running.watched)
            self._running.watched.clear()
        if not self._careful:
            return
        for entry, *_ in self._running.undo:
            if type(entry.value) not in SETTLED:
                dump_state(entry.table.frozen(entry.value))


def run_now(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, in an event loop of its own, also where one is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(copy_context().run, asyncio.run, work).result()
