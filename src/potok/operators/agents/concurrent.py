"""Agents that take several records at once, for those that wait for the outside world.

The records of one key keep their order: one is in the air at a time. Whoever takes records one after the other has
the crew for itself while it does, also if it waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from potok.operators.agents.context import NO_RECORD, Running
from potok.operators.agents.drive import END, WAITING, Driven, Inlet, Turns
from potok.operators.agents.transactions import ConcurrencyControl, Conflict, InFlight
from potok.operators.core.call import describe_error

AHEAD = 4
"""So many records for each place may wait for one."""


@dataclass(slots=True)
class Member(Driven):
    """One instance of an agent. `held` are the records that it was given and keeps back, for a list of them."""

    held: list[InFlight] = field(default_factory=list)


class ConcurrentTurns(Turns):
    """The turns of a crew in which some agents take several records at once."""

    def __init__(
        self, running: Running, driven: Sequence[Driven], look_at: Callable[[int], Any], *, careful: bool
    ) -> None:
        super().__init__(running, careful=careful)
        self._space, self._driven, self._look_at = ConcurrencyControl(running, look_at), driven, look_at
        self._lock = asyncio.Lock()
        self._crowds = {id(agent): Crowd(agent, self.fly) for agent in driven if agent.part.concurrency > 1}

    async def take(self, agent: Driven, number: int, item: Any) -> None:
        crowd = self._crowds.get(id(agent))
        if crowd is not None:
            # Others may have been at hand since the batch came to this record.
            self._look_at(number)
            await crowd.take(InFlight(number, item, self._running.key))
            return
        async with self._lock:
            await self._one(agent, number, item)
            await self._channels(number)

    async def _one(self, agent: Driven, number: int, item: Any) -> None:
        self._space.set_to(number, item)
        await super().take(agent, number, item)
        self._space.note_changes()

    async def _channels(self, number: int) -> None:
        """Give what was put into channels to who takes it; the crew is ours."""
        running = self._running
        posted, running.posted = deque(running.posted), []
        while posted:
            channel, item = posted.popleft()
            for agent in self._driven:
                if agent.part.channel != channel:
                    continue
                crowd = self._crowds.get(id(agent))
                if crowd is not None:
                    crowd.add(InFlight(number, item, running.key))
                    continue
                await self._one(agent, number, item)
                posted.extend(running.posted)
                running.posted = []

    async def drain(self) -> None:
        """Wait until all records are done. What was sent then stands in the order of the records."""
        while any([await crowd.drain() for crowd in self._crowds.values()]):
            pass
        self._running.sent.sort(key=lambda sent: (sent[1] == NO_RECORD, sent[1]))
        self._running.stand_in = None

    def drop(self, agent: Driven) -> None:
        crowd = self._crowds.get(id(agent))
        if crowd is None:
            super().drop(agent)
        else:
            crowd.close()

    async def fly(self, member: Member, flight: InFlight) -> None:
        """Give a record to an instance of an agent; one that comes into conflict has the crew for itself then."""
        try:
            await self._attempt(member, flight)
        except Conflict:
            held = member.held
            member.drop()
            async with self._lock:
                flight.begin_again()
                flight.alone = True
                for earlier in held:
                    earlier.begin_again()
                    earlier.alone = True
                    await self._attempt(member, earlier)
                await self._attempt(member, flight)
        if flight.posted:
            async with self._lock:
                self._space.set_to(flight.number, flight.item)
                self._running.posted, flight.posted = flight.posted, []
                await self._channels(flight.number)

    async def _attempt(self, member: Member, flight: InFlight) -> None:
        try:
            async with asyncio.timeout(member.part.timeout_s) as limit:
                if member.coroutine is None:
                    member.inlet = Inlet()
                    member.coroutine = member.part.begin(member.inlet)
                    if await self._go(member, None, flight, limit):
                        raise RuntimeError(f'agent "{member.part.name}" ended without asking for a record')
                if await self._go(member, flight.item, flight, limit):
                    member.coroutine = None
            self._check()
        except Conflict:
            raise
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
            await self._crash(member, flight, error)
        else:
            self._space.land(flight)

    async def _crash(self, member: Member, flight: InFlight, error: BaseException) -> None:
        self._space.give_up(flight)
        text = describe_error(error)
        numbers = [earlier.number for earlier in member.held]
        member.errors |= dict.fromkeys([*numbers, flight.number], text)
        member.drop()
        if member.part.on_error is None:
            return
        async with contextlib.AsyncExitStack() as stack:
            if not flight.alone:
                await stack.enter_async_context(self._lock)
            self._space.set_to(flight.number, flight.item)
            await self._tell(member, error)
            self._space.note_changes()
            flight.posted, self._running.posted = self._running.posted, []

    @types.coroutine
    def _go(self, member: Member, got: Any, flight: InFlight, limit: asyncio.Timeout) -> Generator[Any, Any, bool]:
        """Go on until the agent asks for a record, and whether it ended instead; the flight is at hand then."""
        coroutine: Coroutine[Any, Any, Any] | None = member.coroutine
        assert coroutine is not None
        failed: BaseException | None = None
        while True:
            if not flight.at_hand:
                yield from self._until_free(flight, limit).__await__()
                self._space.enter(flight, member.part.name)
            try:
                waits_for = coroutine.send(got) if failed is None else coroutine.throw(failed)
            except StopIteration:
                return True
            if waits_for is WAITING:
                return False
            self._space.leave(flight)
            try:
                got, failed = (yield waits_for), None
            except BaseException as error:  # noqa: BLE001 - a future that failed, or a timeout: the agent hears of it
                got, failed = None, error

    async def _until_free(self, flight: InFlight, limit: asyncio.Timeout) -> None:
        """Wait until nobody has the crew for itself; that is no time the agent has taken."""
        if flight.alone or not self._lock.locked():
            return
        loop, until = asyncio.get_running_loop(), limit.when()
        began = loop.time()
        if not limit.expired():
            limit.reschedule(None)
        async with self._lock:
            pass
        if until is not None and not limit.expired():
            limit.reschedule(until + loop.time() - began)


Fly = Callable[[Member, InFlight], Coroutine[Any, Any, None]]


class Crowd:
    """The instances of one agent, and the records that wait for one."""

    def __init__(self, agent: Driven, fly: Fly) -> None:
        self._fly = fly
        self._members = [Member(agent.part, errors=agent.errors) for _ in range(agent.part.concurrency)]
        self._idle, self._holding = list(self._members), list[Member]()
        self._waiting: deque[InFlight] = deque()
        self._keys: set[Any] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, flight: InFlight) -> None:
        self.add(flight)
        await asyncio.sleep(0)
        while len(self._waiting) > AHEAD * len(self._members):
            await self._one_landed()

    def add(self, flight: InFlight) -> None:
        self._waiting.append(flight)
        self._launch()

    def _launch(self) -> None:
        """Give records to instances, each key to one of them; who holds some of a list back comes first."""
        later: deque[InFlight] = deque()
        passed: set[Any] = set()
        while self._waiting and (self._idle or self._holding):
            flight = self._waiting.popleft()
            if flight.key is not None and (flight.key in self._keys or flight.key in passed):
                later.append(flight)
                passed.add(flight.key)
                continue
            self._start(self._member(flight.key), flight)
        self._waiting = deque([*later, *self._waiting])

    def _member(self, key: Any) -> Member:
        if not self._holding:
            return self._idle.pop()
        same = [member for member in self._holding if any(flight.key == key for flight in member.held)]
        chosen = (same or self._holding)[0]
        self._holding.remove(chosen)
        return chosen

    def _start(self, member: Member, flight: InFlight) -> None:
        self._keys.update(each.key for each in (flight, *member.held) if each.key is not None)
        task = asyncio.ensure_future(self._run(member, flight))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def _run(self, member: Member, flight: InFlight) -> None:
        await self._fly(member, flight)
        self._keys.difference_update(each.key for each in (flight, *member.held))
        if member.coroutine is not None and member.inlet.holding:
            member.held.append(flight)
            self._holding.append(member)
        else:
            member.held.clear()
            self._idle.append(member)
        self._launch()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is None:
            # Others stay, for who waits for them to hear of it.
            self._tasks.discard(task)

    async def _one_landed(self) -> None:
        if not self._tasks and self._holding:
            member = self._holding.pop(0)
            self._start(member, InFlight(member.held[-1].number, END))
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def drain(self) -> bool:
        """Wait for all; whether there was anything to wait for."""
        waited = False
        while self._tasks or self._waiting or self._holding:
            waited = True
            await self._one_landed()
        return waited

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for member in self._members:
            member.drop()


def turns_of(
    running: Running, driven: Sequence[Driven], look_at: Callable[[int], Any], *, careful: bool, suspicious: bool
) -> Turns:
    """The turns of a crew, by what its agents ask for."""
    if any(agent.part.concurrency > 1 for agent in driven):
        return ConcurrentTurns(running, driven, look_at, careful=careful)
    return Turns(running, careful=careful, suspicious=suspicious)
