"""Wait for positions with one thread for all requests: it polls the ledgers while requests wait."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.requests import ClientDisconnect

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.records.position import Position
from potok.server.access.disconnects import current_stop
from potok.server.errors import Busy, InternalError
from potok.snapshots.position_wait import LOOK_S, Ledgers, PositionWait
from potok.sql.budget import Stop

log = logging.getLogger(__name__)

MOST = 4_000
"""How many reads may wait at a time."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """One read that waits for one query."""

    query: str
    position: Position
    deadline: float
    stop: Stop | None
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]
    wait: PositionWait | None = None

    def end(self, error: BaseException | None = None) -> None:
        # The loop is closed if the server ends meanwhile.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(_settle, self.done, error)


def _settle(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


class PositionWaits:
    """The reads of a server that wait for a position."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._changed = threading.Condition()
        self._new: list[_Waiting] = []
        self._count = 0
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def count(self) -> int:
        """How many reads wait."""
        return self._count

    async def until(self, queries: Iterable[str], position: Position, timeout_s: float) -> None:
        """Return when queries have committed past a position; raise `PositionNotReachedError` after the timeout."""
        loop, deadline, stop = asyncio.get_running_loop(), time.monotonic() + timeout_s, current_stop()
        waiting = [_Waiting(query, position, deadline, stop, loop, loop.create_future()) for query in queries]
        self._add(waiting)
        try:
            await asyncio.gather(*(found.done for found in waiting))
        finally:
            for found in waiting:
                found.done.cancel()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _add(self, waiting: list[_Waiting]) -> None:
        with self._changed:
            if self._closed or self._count + len(waiting) > MOST:
                raise Busy
            self._count += len(waiting)
            self._new += waiting
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="potok-positions", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _watch(self) -> None:
        """Run while somebody waits."""
        ledgers, waiting = Ledgers(self._broker), list[_Waiting]()
        pause_s = max(LOOK_S, self._broker.poll_interval_s)
        while True:
            with self._changed:
                new, self._new = self._new, []
                waiting += new
                self._count = len(waiting)
                if not waiting or self._closed:
                    self._thread = None
                    break
            try:
                waiting = self._look(ledgers, waiting)
            except Exception as error:
                log.exception("waiting for positions failed")
                for found in waiting:
                    found.end(InternalError(type(error).__name__))
                ledgers, waiting = Ledgers(self._broker), []
            with self._changed:
                if not self._new and waiting:
                    self._changed.wait(pause_s)
        for found in waiting:
            found.end(Busy())

    def _look(self, ledgers: Ledgers, waiting: list[_Waiting]) -> list[_Waiting]:
        """Look once; return those that still wait."""
        try:
            return self._look_at_all(ledgers, waiting)
        except PotokError as error:
            if error.passing:
                return [found for found in waiting if not self._is_given_up(found, error)]
        # One by one, so that a damaged ledger affects only those who wait for it.
        left: list[_Waiting] = []
        for found in waiting:
            try:
                left += self._look_at_all(ledgers, [found], again=True)
            except PotokError as error:
                found.end(error)
        return left

    def _look_at_all(self, ledgers: Ledgers, waiting: list[_Waiting], *, again: bool = False) -> list[_Waiting]:
        """Look at the ledgers; decide about those whose queries have committed, or about all `again`."""
        new = [found for found in waiting if found.wait is None or found.query not in found.wait.links]
        if new:
            links = ledgers.links()
            for found in new:
                found.wait = PositionWait(found.query, found.position, links)
        changed = ledgers.look({query for found in waiting if found.wait is not None for query in found.wait.queries})
        left: list[_Waiting] = []
        for found in waiting:
            wait = found.wait
            assert wait is not None
            looks = again or found in new or not changed.isdisjoint(wait.queries)
            if looks and wait.is_over(ledgers):
                found.end()
            elif not self._is_given_up(
                found, None if found.deadline > time.monotonic() else self._error(wait, ledgers)
            ):
                left.append(found)
        return left

    def _error(self, wait: PositionWait, ledgers: Ledgers) -> PotokError:
        return wait.error(ledgers, self._broker)

    def _is_given_up(self, found: _Waiting, error: PotokError | None) -> bool:
        """End a wait whose time is over, or whose client is gone."""
        if found.stop is not None and found.stop.is_asked:
            found.end(ClientDisconnect())
            return True
        if found.deadline <= time.monotonic() and error is not None:
            found.end(error)
            return True
        return found.done.cancelled()
