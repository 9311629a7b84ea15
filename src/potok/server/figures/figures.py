"""Figures of all queries of a log, sampled once a second while somebody looks at them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from potok.clock import now_ms
from potok.errors import PotokError
from potok.server.figures.feed import Feed
from potok.server.figures.overview import overview_row, totals, worst_first
from potok.server.figures.query_feed import QueryFeed
from potok.snapshots.tables import NoSuchQuery, known_queries
from potok.statements.database import Database
from potok.statements.push.transient import is_transient

HISTORY = 120
"""Points that a page gets when it opens, so that its charts are not empty."""

SAMPLE_S = 1.0

WATCHED_S = 300.0
"""Sampling ends this long after the last look, so that a console that nobody watches costs nothing."""

FRESH_S = 0.3
"""Figures of this age are shared by all clients."""

CURVES = ("rate_in", "rate_out", "lag", "batch_ms", "dead_letters", "state_bytes")


class _Followed:
    """One query: its feed, its latest figures and their history."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.history: deque[dict[str, Any]] = deque(maxlen=HISTORY)
        self.latest: dict[str, Any] = {}
        self.lock = threading.Lock()
        self._snapshot: tuple[float, dict[str, Any]] = (-1e9, {})

    def sample(self) -> dict[str, Any]:
        """Read the light figures and add a point to the history."""
        with self.lock:
            self.latest = self._read(self.feed.figures)
            self.history.append({"at": self.latest["at"], **{curve: self.latest.get(curve) for curve in CURVES}})
            return self.latest

    def snapshot(self, *, fresh: bool = False) -> dict[str, Any]:
        with self.lock:
            at, found = self._snapshot
            if fresh or time.monotonic() - at > FRESH_S:
                found = self._read(self.feed.snapshot)
                self._snapshot = (time.monotonic(), found)
            return found

    def _read(self, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - a supervisor: the page says what is wrong and looks again
            return {**self.latest, "at": now_ms(), "state": "unreadable", "error": str(error)}


class Figures:
    """The figures of all queries of a log, wherever they run. Any thread may call."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._own: dict[str, Feed] = {}
        self._followed: dict[str, _Followed] = {}
        self._lock, self._sampling = threading.Lock(), threading.Lock()
        self._looked_at, self._sampled_at = -1e9, -1e9
        self._totals: deque[dict[str, Any]] = deque(maxlen=HISTORY // 2)
        self._wake, self._closed = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, query: str, feed: Feed) -> None:
        """Show a query by a feed of the program, which has panels, or a topology before the first start."""
        self._own[query] = feed

    def watch(self) -> None:
        """Begin to sample before anybody looks, so that the first page has a history."""
        self._look()

    def names(self) -> list[str]:
        """Return the queries of the log and of the catalog, without those of push queries."""
        found = {*self._own, *known_queries(self._database.broker)}
        found |= {info.query_id for info in self._database.queries()}
        return sorted(name for name in found if not is_transient(name))

    def overview(self) -> list[dict[str, Any]]:
        """Return a row for each query, the worst first."""
        self._look()
        self._sample_if_due()
        return self._rows()

    def totals_history(self) -> list[dict[str, Any]]:
        """Return the totals of the last minute."""
        return list(self._totals)

    def _rows(self) -> list[dict[str, Any]]:
        infos = {info.query_id: info for info in self._database.queries()}
        with self._lock:
            followed = dict(self._followed)
        broker = self._database.broker
        rows = []
        for name, one in followed.items():
            row = overview_row(broker, name, one.latest, infos.get(name), is_own=name in self._own)
            row["history"] = [[point["rate_in"], point["lag"]] for point in list(one.history)[-60:]]
            rows.append(row)
        return worst_first(rows)

    def feed(self, query: str) -> Feed:
        return self._of(query).feed

    def row(self, query: str) -> dict[str, Any]:
        """Return the row of one query in the overview."""
        info = {info.query_id: info for info in self._database.queries()}.get(query)
        figures = self._of(query).snapshot()
        return overview_row(self._database.broker, query, figures, info, is_own=query in self._own)

    def snapshot(self, query: str, *, history: bool = False, fresh: bool = False) -> dict[str, Any]:
        """Return the figures of a query with its dead letters and panels; with `fresh`, not those of another client."""
        self._look()
        one = self._of(query)
        found = one.snapshot(fresh=fresh)
        return {**found, "history": list(one.history)} if history else found

    def close(self) -> None:
        self._closed.set()
        self._wake.set()

    def _of(self, query: str) -> _Followed:
        with self._lock:
            found = self._followed.get(query)
        if found is None:
            names = self.names()
            if query not in names:
                raise NoSuchQuery(query, names)
            found = self._follow([query])[query]
            found.sample()
        return found

    def _follow(self, names: list[str]) -> Mapping[str, _Followed]:
        with self._lock:
            for name in names:
                own = self._own.get(name)
                known = self._followed.get(name)
                if known is None or (own is not None and known.feed is not own):
                    self._followed[name] = _Followed(own or QueryFeed(self._database.broker, name))
            return dict(self._followed)

    def _look(self) -> None:
        self._looked_at = time.monotonic()
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._run, name="potok-figures", daemon=True)
                self._thread.start()
        self._wake.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._wake.clear()
            if time.monotonic() - self._looked_at > WATCHED_S and not self._closed.is_set():
                self._wake.wait()
            if self._closed.is_set():
                return
            self._sample_if_due()
            self._closed.wait(SAMPLE_S)

    def _sample_if_due(self) -> None:
        with self._sampling:
            if time.monotonic() - self._sampled_at < SAMPLE_S * 0.8:
                return
            self._sampled_at = time.monotonic()
            try:
                names = self.names()
                followed = self._follow(names)
                with self._lock:
                    for gone in self._followed.keys() - names:
                        del self._followed[gone]
                for name in names:
                    followed[name].sample()
                self._totals.append(totals(self._rows()))
            except PotokError:  # the log does not answer: the figures stay as they are
                return
