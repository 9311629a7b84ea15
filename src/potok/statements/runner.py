"""The queries of a catalogue at work: those that should run do, and those that failed are tried again."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from potok.errors import PotokError
from potok.statements.books import Wanted

if TYPE_CHECKING:
    from potok.engine.shared.member import MemberStatus
    from potok.engine.shared.shared_query import SharedQuery

log = logging.getLogger(__name__)

FIRST_RETRY_S, LAST_RETRY_S = 1.0, 60.0


class Runner:
    """Keeps the members of a shared query to what is wanted. Its owner holds a lock around every call."""

    def __init__(self, shared: SharedQuery) -> None:
        self.shared = shared
        self._running: dict[str, Wanted] = {}
        self._refused: dict[str, str] = {}
        """Queries that could not even begin, and why."""
        self._retries: dict[str, tuple[float, float]] = {}

    def state_of(self, wanted: Wanted, members: Mapping[str, MemberStatus]) -> tuple[str, str]:
        """What a query does, and what is wrong with it."""
        if wanted.query_id in self._refused:
            return "ERROR", self._refused[wanted.query_id]
        status = members.get(wanted.query_id)
        if status is None:
            return ("PAUSED" if wanted.paused else "RUNNING"), ""
        return {"FAILED": "ERROR"}.get(status.state.value, status.state.value), status.error

    def try_out(self, old: Wanted | None, new: Wanted) -> None:
        """Begin a query before it is written down, in place of the one of its name: whether it can begin, and whether
        the state that is there fits it, is only known then. If it cannot, all is as it was."""
        if old is not None and old.query_id in self.shared.members():
            self.shared.remove(old.query_id)
        try:
            self._begin(new)
        except PotokError:
            if old is not None:
                self._begin(old)
            raise

    def take_back(self, old: Wanted | None, new: Wanted) -> None:
        """Undo what was tried out."""
        self._end(new.query_id)
        if old is not None:
            self._begin(old)

    def settle(self, queries: Mapping[str, Wanted]) -> None:
        """Let those queries run that should, and no others. One that cannot begin hurts nobody."""
        for query_id in [query_id for query_id in self._running if query_id not in queries]:
            self._end(query_id)
        for wanted in queries.values():
            known = self._running.get(wanted.query_id)
            if known is not None and known.text != wanted.text:
                self._end(wanted.query_id)
                known = None
            if known is None:
                self._begin_or_note(wanted)
            elif known.paused != wanted.paused and wanted.query_id not in self._refused:
                (self.shared.pause if wanted.paused else self.shared.resume)(wanted.query_id)
                self._running[wanted.query_id] = wanted

    def look_after(self) -> None:
        """Try those again that failed, less and less often."""
        now = time.monotonic()
        failed = {name for name, status in self.shared.members().items() if status.state.value == "FAILED"}
        troubled = (failed | self._refused.keys()) & self._running.keys()
        self._retries = {name: when for name, when in self._retries.items() if name in self._running}
        for name in troubled:
            due, pause = self._retries.get(name, (now + FIRST_RETRY_S, FIRST_RETRY_S))
            if now >= due:
                pause = min(pause * 2, LAST_RETRY_S)
                due = now + pause
                self._try_again(name)
            self._retries[name] = (due, pause)

    def _try_again(self, name: str) -> None:
        if name in self._refused:
            self._begin_or_note(self._running[name])
            return
        with contextlib.suppress(PotokError):
            self.shared.retry(name)

    def _begin_or_note(self, wanted: Wanted) -> None:
        try:
            self._begin(wanted)
        except PotokError as error:
            self._refused[wanted.query_id] = error.message
            self._running[wanted.query_id] = wanted
            log.warning("query %s cannot begin: %s", wanted.query_id, error)

    def _begin(self, wanted: Wanted) -> None:
        self.shared.add(wanted.topology, begin=_beginning(wanted))
        self._refused.pop(wanted.query_id, None)
        self._running[wanted.query_id] = wanted
        if wanted.paused:
            self.shared.pause(wanted.query_id)

    def _end(self, query_id: str) -> None:
        if query_id in self.shared.members():
            self.shared.remove(query_id)
        self._running.pop(query_id, None)
        self._refused.pop(query_id, None)


def _beginning(wanted: Wanted) -> Literal["earliest", "latest"]:
    return "latest" if wanted.begin.lower() == "latest" else "earliest"
