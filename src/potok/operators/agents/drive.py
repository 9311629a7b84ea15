"""Run the coroutines of agents: one `send` for each record, and an event loop only for those that really wait.

An agent asks its inlet for the next record, which suspends it with WAITING; awaiting sends and tables completes
immediately, so that everything between two records is one call. Anything else that an agent awaits surfaces as an
asyncio future, and is awaited here under a timeout.
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
from potok.operators.agents.values import SETTLED, check_watched
from potok.operators.core.call import describe_error
from potok.state.cell import CellDoesNotFit
from potok.state.codec import dump_state
from potok.topology.agents import AgentPart

WAITING: Any = object()
"""The value that an agent yields when it asks for a record."""

END: Any = object()
"""What an agent that holds records back receives when its batch has no more."""

Failure = Exception | asyncio.CancelledError

_logger = logging.getLogger("potok.faust")


@types.coroutine
def next_item() -> Generator[Any, Any, Any]:
    return (yield WAITING)


class Inlet:
    """Where an agent gets its records. One that is `holding` has taken some that it has not processed yet."""

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
    """A running agent. `hand` are the numbers of the records that it was given and has not processed; `send` gives
    one to a coroutine that asks for it.
    """

    part: AgentPart
    inlet: Inlet = field(default_factory=Inlet)
    coroutine: Coroutine[Any, Any, Any] | None = None
    send: Callable[[Any], Any] | None = None
    hand: list[int] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)
    hoisted: list[Entry] = field(default_factory=list)
    """The rows that it has read before its loop, and may change with any record."""
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.part.name

    async def start(self) -> None:
        """Start the function of the agent, and run until it asks for a record."""
        self.inlet = Inlet()
        self.coroutine = self.part.start(self.inlet)
        try:
            waits_for = self.coroutine.send(None)
        except StopIteration as ended:
            self.coroutine = None
            raise RuntimeError(f'agent "{self.part.name}" ended without reading a record') from ended
        if waits_for is not WAITING:
            await self.wait(waits_for)
        if self.coroutine is None:
            raise RuntimeError(f'agent "{self.part.name}" ended without reading a record')
        self.send = self.coroutine.send

    async def wait(self, waits_for: Any) -> None:
        """Wait for what the agent awaits, until it asks for a record or ends."""
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
    """Pass what an agent awaits to the event loop, until it asks for a record; return whether it ended instead."""
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
    """Give records to agents in turn, so that one that fails has no effect."""

    def __init__(self, running: Running, *, careful: bool, suspicious: bool = False) -> None:
        """If `careful`, check after each turn that all touched values are data. If `suspicious`, treat each row that
        was ever read as touched, because agents may keep them in variables.
        """
        self._running, self._careful, self._suspicious = running, careful, suspicious
        running.copies_all = careful or type(self) is not Turns
        self.direct = not careful and type(self) is Turns
        """Whether nothing needs to be done between two records."""

    async def take(self, agent: Driven, number: int, item: Any) -> None:
        """Give a record, by its number in the batch, to an agent."""
        sent = self._running.begin_turn()
        self._running.agent = agent.part.name
        if item is not END:
            agent.hand.append(number)
        try:
            if agent.send is None:
                await agent.start()
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
        """Remember rows that an agent may change without reading them again."""
        for entry in agent.hoisted:
            entry.table.value_of(entry)
        if self._suspicious:
            for table in self._running.tables.values():
                table.remember_all()

    async def settle(
        self, agent: Driven, sent: int, waits_for: Any = WAITING, error: BaseException | None = None
    ) -> None:
        """Finish a turn, whether the agent waits, has failed or has ended."""
        try:
            if error is not None:
                raise error
            if waits_for is not WAITING:
                await agent.wait(waits_for)
            self._check()
        except StopIteration:
            # It ended, and starts again with the next record.
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
        await self._report_error(agent, error)

    async def _report_error(self, agent: Driven, error: BaseException) -> None:
        """Call the error handler of an agent, in its own turn: if it fails too, that is only logged. The record is a
        dead letter anyway.
        """
        if agent.part.on_error is None:
            return
        sent = self._running.begin_turn()
        try:
            async with asyncio.timeout(agent.part.timeout_s):
                result = agent.part.on_error(agent.part.name, error)
                if isawaitable(result):
                    await result
            self._check()
        except Exception as failure:  # noqa: BLE001 - the user's function may raise anything
            self._running.take_back(sent)
            _logger.error('on_error of agent "%s" has failed: %s', agent.part.name, describe_error(failure))

    async def drain(self) -> None:
        """Wait until all records that were given are done; here they always are."""

    def drop(self, agent: Driven) -> None:
        """End an agent. Changes made by its `finally` blocks do not count: they belong to no record."""
        sent = self._running.begin_turn()
        agent.drop()
        self._running.take_back(sent)

    def _check(self) -> None:
        """Raise if a protected value was changed in place; if careful, also if a touched value is not data."""
        if self._running.watched:
            check_watched(self._running.watched)
            self._running.watched.clear()
        if not self._careful:
            return
        for entry, *_ in self._running.undo:
            if type(entry.value) not in SETTLED:
                dump_state(entry.table.frozen(entry.value))


def run_now(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end in a new event loop, even if one is already running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(copy_context().run, asyncio.run, work).result()
