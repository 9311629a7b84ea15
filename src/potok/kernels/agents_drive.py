"""Driving the coroutines of agents by hand: one `send` for each record, and no event loop but for what really waits.

An agent asks its inlet for the next record, which suspends it with WAITING; all that it awaits of ours (sends, tables)
is done at once, so that everything between two records is one call. What an agent awaits of the outside world comes up
as a future of asyncio, and is awaited here under a timeout while the agent sleeps.
"""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from potok.kernels.agents_running import Running
from potok.kernels.agents_tables import ABSENT
from potok.kernels.agents_values import IMMUTABLE
from potok.kernels.call import describe_error
from potok.state.codec import dump_state
from potok.topology.agents import AgentPart

WAITING: Any = object()
"""What an agent that asks for a record is suspended with."""

END: Any = object()
"""What an agent is given that holds records back, when there are no more in its batch."""

Failure = Exception | asyncio.CancelledError


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

    def __anext__(self) -> Any:
        return next_item()


@dataclass(slots=True)
class Driven:
    """An agent at work. `hand` are the numbers of the records that it was given and has not dealt with."""

    part: AgentPart
    inlet: Inlet = field(default_factory=Inlet)
    coroutine: Coroutine[Any, Any, Any] | None = None
    hand: list[int] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)

    async def give(self, item: Any) -> None:
        """Hand over a record, and go on until the agent asks for another or ends; one that ended begins again."""
        if self.coroutine is None:
            self.inlet = Inlet()
            self.coroutine = self.part.begin(self.inlet)
            if await self._resume(None):
                raise RuntimeError(f'agent "{self.part.name}" ended without asking for a record')
        await self._resume(item)

    async def _resume(self, item: Any) -> bool:
        """Whether the agent ended."""
        assert self.coroutine is not None
        try:
            waits_for = self.coroutine.send(item)
            if waits_for is not WAITING:
                async with asyncio.timeout(self.part.timeout_s):
                    await _until_waiting(self.coroutine, waits_for)
        except StopIteration:
            self.coroutine = None
            return True
        return False

    def drop(self) -> None:
        """Forget the coroutine; what it does on the way out counts no more."""
        coroutine, self.coroutine = self.coroutine, None
        if coroutine is not None:
            with contextlib.suppress(Exception):
                coroutine.close()


@types.coroutine
def _until_waiting(coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, None]:
    """Hand what an agent waits for on to the event loop, until it waits for a record."""
    while waits_for is not WAITING:
        try:
            got = yield waits_for
        except BaseException as error:  # noqa: BLE001 - a future that failed, or a timeout: the agent hears of it
            waits_for = _ended(lambda error=error: coroutine.throw(error))  # type: ignore[misc]
        else:
            waits_for = _ended(lambda got=got: coroutine.send(got))  # type: ignore[misc]


def _ended(resume: Callable[[], Any]) -> Any:
    """A generator may not raise StopIteration; an agent that ended begins again with the next record anyway."""
    try:
        return resume()
    except StopIteration:
        return WAITING


class Turns:
    """Gives records to agents, each at its turn, so that one who fails leaves no trace."""

    def __init__(self, running: Running, *, careful: bool) -> None:
        self._running, self._careful = running, careful

    async def take(self, agent: Driven, number: int, item: Any) -> None:
        """Give a record, by its number among all of the batch, to an agent."""
        running = self._running
        running.turn += 1
        running.undo = []
        running.agent = agent.part.name
        sent = len(running.sent)
        if item is not END:
            agent.hand.append(number)
        try:
            await agent.give(item)
            if self._careful:
                self._check()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - an agent may raise anything
            await self._fail(agent, error, sent)
        else:
            if not agent.inlet.holding:
                agent.hand.clear()

    async def _fail(self, agent: Driven, error: BaseException, sent: int) -> None:
        self._running.take_back(sent)
        text = describe_error(error)
        agent.errors |= dict.fromkeys(agent.hand, text)
        agent.hand.clear()
        agent.drop()
        if agent.part.on_error is not None:
            with contextlib.suppress(Exception):
                told = agent.part.on_error(agent.part.name, error)
                if asyncio.iscoroutine(told):
                    await told

    def _check(self) -> None:
        """Raise if something that the record at hand has touched is no data."""
        for entry, *_ in self._running.undo:
            if type(entry.value) not in IMMUTABLE and entry.value is not ABSENT:
                dump_state(entry.table.frozen(entry.value))


def run_now(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, in an event loop of its own, also where one is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()
