"""Agents that process several records concurrently, for agents that wait for external systems.

The records of one key keep their order: one is in flight at a time. An agent that processes records one by one has
exclusive access to the group meanwhile, even if it waits.
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
"""How many records may wait for each instance."""


@dataclass(slots=True)
class Instance(Driven):
    """One instance of an agent. `held` are the records that it was given and holds back, for a list of them."""

    held: list[InFlight] = field(default_factory=list)


class ConcurrentTurns(Turns):
    """The turns of an agent group in which some agents process several records concurrently."""

    def __init__(
        self, running: Running, driven: Sequence[Driven], look_at: Callable[[int], Any], *, careful: bool
    ) -> None:
        super().__init__(running, careful=careful)
        self._space, self._driven, self._look_at = ConcurrencyControl(running, look_at), driven, look_at
        self._lock = asyncio.Lock()
        self._pools = {id(agent): InstancePool(agent, self.process) for agent in driven if agent.part.concurrency > 1}

    async def take(self, agent: Driven, number: int, item: Any) -> None:
        pool = self._pools.get(id(agent))
        if pool is not None:
            # Others may have been current since the batch reached this record.
            self._look_at(number)
            await pool.take(InFlight(number, item, self._running.key))
            return
        async with self._lock:
            await self._one(agent, number, item)
            await self._channels(number)

    async def _one(self, agent: Driven, number: int, item: Any) -> None:
        self._space.set_to(number, item)
        await super().take(agent, number, item)
        self._space.note_changes()

    async def _channels(self, number: int) -> None:
        """Give values in channels to their consumers, with exclusive access to the group."""
        running = self._running
        posted, running.posted = deque(running.posted), []
        while posted:
            channel, item = posted.popleft()
            for agent in self._driven:
                if agent.part.channel != channel:
                    continue
                pool = self._pools.get(id(agent))
                if pool is not None:
                    pool.add(InFlight(number, item, running.key))
                    continue
                await self._one(agent, number, item)
                posted.extend(running.posted)
                running.posted = []

    async def drain(self) -> None:
        """Wait until all records are done. Then sort what was sent by the order of the records."""
        while any([await pool.drain() for pool in self._pools.values()]):
            pass
        self._running.sent.sort(key=lambda sent: (sent[1] == NO_RECORD, sent[1]))
        self._running.stand_in = None

    def drop(self, agent: Driven) -> None:
        pool = self._pools.get(id(agent))
        if pool is None:
            super().drop(agent)
        else:
            pool.close()

    async def process(self, instance: Instance, transaction: InFlight) -> None:
        """Give a record to an instance of an agent; after a conflict it gets exclusive access to the group."""
        try:
            await self._attempt(instance, transaction)
        except Conflict:
            held = instance.held
            instance.drop()
            async with self._lock:
                transaction.begin_again()
                transaction.alone = True
                for earlier in held:
                    earlier.begin_again()
                    earlier.alone = True
                    await self._attempt(instance, earlier)
                await self._attempt(instance, transaction)
        if transaction.posted:
            async with self._lock:
                self._space.set_to(transaction.number, transaction.item)
                self._running.posted, transaction.posted = transaction.posted, []
                await self._channels(transaction.number)

    async def _attempt(self, instance: Instance, transaction: InFlight) -> None:
        try:
            async with asyncio.timeout(instance.part.timeout_s) as limit:
                if instance.coroutine is None:
                    instance.inlet = Inlet()
                    instance.coroutine = instance.part.start(instance.inlet)
                    if await self._go(instance, None, transaction, limit):
                        raise RuntimeError(f'agent "{instance.part.name}" ended without reading a record')
                if await self._go(instance, transaction.item, transaction, limit):
                    instance.coroutine = None
            self._check()
        except Conflict:
            raise
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
            await self._crash(instance, transaction, error)
        else:
            self._space.land(transaction)

    async def _crash(self, instance: Instance, transaction: InFlight, error: BaseException) -> None:
        self._space.give_up(transaction)
        text = describe_error(error)
        numbers = [earlier.number for earlier in instance.held]
        instance.errors |= dict.fromkeys([*numbers, transaction.number], text)
        instance.drop()
        if instance.part.on_error is None:
            return
        async with contextlib.AsyncExitStack() as stack:
            if not transaction.alone:
                await stack.enter_async_context(self._lock)
            self._space.set_to(transaction.number, transaction.item)
            await self._report_error(instance, error)
            self._space.note_changes()
            transaction.posted, self._running.posted = self._running.posted, []

    @types.coroutine
    def _go(
        self, instance: Instance, got: Any, transaction: InFlight, limit: asyncio.Timeout
    ) -> Generator[Any, Any, bool]:
        """Run until the agent asks for a record; return whether it ended instead. The transaction is then the current
        one."""
        coroutine: Coroutine[Any, Any, Any] | None = instance.coroutine
        assert coroutine is not None
        failed: BaseException | None = None
        while True:
            if not transaction.at_hand:
                yield from self._until_free(transaction, limit).__await__()
                self._space.enter(transaction, instance.part.name)
            try:
                waits_for = coroutine.send(got) if failed is None else coroutine.throw(failed)
            except StopIteration:
                return True
            if waits_for is WAITING:
                return False
            self._space.leave(transaction)
            try:
                got, failed = (yield waits_for), None
            except BaseException as error:  # noqa: BLE001 - a future that failed, or a timeout: the agent hears of it
                got, failed = None, error

    async def _until_free(self, transaction: InFlight, limit: asyncio.Timeout) -> None:
        """Wait until no agent has exclusive access; this does not count towards the timeout of the agent."""
        if transaction.alone or not self._lock.locked():
            return
        loop, until = asyncio.get_running_loop(), limit.when()
        began = loop.time()
        if not limit.expired():
            limit.reschedule(None)
        async with self._lock:
            pass
        if until is not None and not limit.expired():
            limit.reschedule(until + loop.time() - began)


Fly = Callable[[Instance, InFlight], Coroutine[Any, Any, None]]


class InstancePool:
    """The instances of one agent, and the records that wait for one."""

    def __init__(self, agent: Driven, process: Fly) -> None:
        self._fly = process
        self._instances = [Instance(agent.part, errors=agent.errors) for _ in range(agent.part.concurrency)]
        self._idle, self._holding = list(self._instances), list[Instance]()
        self._waiting: deque[InFlight] = deque()
        self._keys: set[Any] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, transaction: InFlight) -> None:
        self.add(transaction)
        await asyncio.sleep(0)
        while len(self._waiting) > AHEAD * len(self._instances):
            await self._one_landed()

    def add(self, transaction: InFlight) -> None:
        self._waiting.append(transaction)
        self._launch()

    def _launch(self) -> None:
        """Give records to instances, each key to one of them; one that holds records of a list back comes first."""
        later: deque[InFlight] = deque()
        passed: set[Any] = set()
        while self._waiting and (self._idle or self._holding):
            transaction = self._waiting.popleft()
            if transaction.key is not None and (transaction.key in self._keys or transaction.key in passed):
                later.append(transaction)
                passed.add(transaction.key)
                continue
            self._start(self._member(transaction.key), transaction)
        self._waiting = deque([*later, *self._waiting])

    def _member(self, key: Any) -> Instance:
        if not self._holding:
            return self._idle.pop()
        same = [instance for instance in self._holding if any(transaction.key == key for transaction in instance.held)]
        chosen = (same or self._holding)[0]
        self._holding.remove(chosen)
        return chosen

    def _start(self, instance: Instance, transaction: InFlight) -> None:
        self._keys.update(each.key for each in (transaction, *instance.held) if each.key is not None)
        task = asyncio.ensure_future(self._run(instance, transaction))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def _run(self, instance: Instance, transaction: InFlight) -> None:
        await self._fly(instance, transaction)
        self._keys.difference_update(each.key for each in (transaction, *instance.held))
        if instance.coroutine is not None and instance.inlet.holding:
            instance.held.append(transaction)
            self._holding.append(instance)
        else:
            instance.held.clear()
            self._idle.append(instance)
        self._launch()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is None:
            # Keep the others, so that whoever awaits them sees the error.
            self._tasks.discard(task)

    async def _one_landed(self) -> None:
        if not self._tasks and self._holding:
            instance = self._holding.pop(0)
            self._start(instance, InFlight(instance.held[-1].number, END))
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def drain(self) -> bool:
        """Wait for all; return whether there was anything to wait for."""
        waited = False
        while self._tasks or self._waiting or self._holding:
            waited = True
            await self._one_landed()
        return waited

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for instance in self._instances:
            instance.drop()


def turns_of(
    running: Running, driven: Sequence[Driven], look_at: Callable[[int], Any], *, careful: bool, suspicious: bool
) -> Turns:
    """Return the turns of an agent group, depending on the concurrency of its agents."""
    if any(agent.part.concurrency > 1 for agent in driven):
        return ConcurrentTurns(running, driven, look_at, careful=careful)
    return Turns(running, careful=careful, suspicious=suspicious)
