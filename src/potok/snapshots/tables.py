"""All tables of a query."""

from __future__ import annotations

import difflib
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from potok.duration import Duration, to_seconds
from potok.errors import QueryError
from potok.log.broker import Broker
from potok.log.errors import BrokerClosed
from potok.log.open import NoLogThere, log_exists, open_broker
from potok.records.position import Position
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.position_wait import wait_for_position
from potok.snapshots.rows.layout import TableLayout, load_layouts
from potok.snapshots.snapshot import Committed, Snapshot, read_snapshot
from potok.snapshots.state_location import state_of
from potok.snapshots.table_view import TableView
from potok.state.entry import metadata_key_of

T = TypeVar("T")

_Marks = tuple[bytes | None, ...]


class NoSuchQuery(QueryError):
    """A query that never ran here."""

    def __init__(self, query: str, known: list[str]) -> None:
        there = f"there are: {', '.join(known)}" if known else "no query has run here yet"
        super().__init__(f'there is no query "{query}"', hint=there)


class NoSuchTable(QueryError, KeyError):
    """A table that the query does not have."""

    def __init__(self, table: str, query: str, known: list[str]) -> None:
        close = difflib.get_close_matches(table, known, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"its tables: {', '.join(known) or 'none'}"
        super().__init__(f'query "{query}" has no table "{table}"', hint=hint)


class Tables:
    """The tables of one query, by name."""

    def __init__(self, broker: Broker, query: str) -> None:
        self._broker, self.query = broker, query
        if read_entry(broker, query) is None:
            raise NoSuchQuery(query, known_queries(broker))

    def __repr__(self) -> str:
        return f'<Tables of query "{self.query}": {", ".join(self.names()) or "none"}>'

    def layouts(self) -> dict[str, TableLayout]:
        data = self._broker.get_metadata(metadata_key_of(self.query, "tables"))
        return {} if data is None else load_layouts(data)

    def names(self) -> list[str]:
        """Return the names of the tables."""
        return sorted(self.layouts())

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __getitem__(self, name: str) -> TableView:
        layouts = self.layouts()
        if name not in layouts:
            raise NoSuchTable(name, self.query, sorted(layouts))
        return TableView(self, layouts[name])

    def read(self, work: Callable[[Snapshot], T], *, frozen: bool = False) -> T:
        """Run `work` on one snapshot of all tables; work that takes longer than a batch needs a `frozen` one."""
        return read_snapshot(self._committed, work, frozen=frozen)

    def wait_for(self, position: Position | str, timeout: Duration = "30 seconds") -> None:
        """Wait until the tables include everything before a position: read your own writes.

        The position is that of a write: the `Potok-Position` of a response, or `Position.after(...)`. Raise
        `PositionNotReachedError` after the timeout.
        """
        wait_for_position(self._broker, self.query, position, to_seconds(timeout))

    def watermark_ms(self, step: str) -> int | None:
        """Return the watermark of a step in the last committed batch; None if it has none."""
        entry = read_entry(self._broker, self.query)
        assert entry is not None
        return entry.watermarks.get(step)

    def snapshot(self) -> dict[str, dict[Any, Any]]:
        """Return all rows of all tables, at one committed batch."""
        views = [self[name] for name in self.names()]
        return self.read(lambda snapshot: {view.name: dict(view.rows_of(snapshot)) for view in views})

    def _committed(self) -> Committed:
        return committed(self._broker, self.query)


class OpenTables(Tables):
    """The tables of a query and the connection to their log.

    The connection is closed by `close()`, at the end of a `with` block, or with the last reference. Other connections
    of the process stay open.
    """

    def __init__(self, broker: Broker, query: str) -> None:
        self._finalizer = weakref.finalize(self, broker.close)
        try:
            super().__init__(broker, query)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._finalizer()

    def __repr__(self) -> str:
        return super().__repr__() if self._finalizer.alive else f'<Tables of query "{self.query}", closed>'

    def layouts(self) -> dict[str, TableLayout]:
        self._check_open()
        return super().layouts()

    def read(self, work: Callable[[Snapshot], T], *, frozen: bool = False) -> T:
        self._check_open()
        return super().read(work, frozen=frozen)

    def wait_for(self, position: Position | str, timeout: Duration = "30 seconds") -> None:
        self._check_open()
        super().wait_for(position, timeout)

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise BrokerClosed(self._broker.url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_tables(
    broker: str | Path, query: str, *, wait_for: Position | str | None = None, timeout: Duration = "30 seconds"
) -> OpenTables:
    """Open the tables of a query by the URL of its log, whether or not it is running.

    >>> with open_tables("file:./data", "stream-processor") as tables:
    ...     tables["order_counts"].get("user_001")

    Args:
        wait_for: The position of a write that the tables must include; see `Tables.wait_for`.
        timeout: How long to wait for it.
    """
    if not log_exists(broker):
        raise NoLogThere(broker)
    tables = OpenTables(open_broker(broker, shared=False), query)
    if wait_for is not None:
        try:
            tables.wait_for(wait_for, timeout)
        except BaseException:
            tables.close()
            raise
    return tables


_known: weakref.WeakKeyDictionary[Broker, dict[str, tuple[_Marks, Committed]]] = weakref.WeakKeyDictionary()


def committed(broker: Broker, query: str) -> Committed:
    """Return the last committed batch of a query, and the location of its cells.

    Called before and after every read, mostly with the same result: the metadata is decoded once.
    """
    names = [metadata_key_of(query, what) for what in ("ledger", "state", "cells")]
    metadata_keys = broker.get_metadata_of(names)
    known = _known.setdefault(broker, {}).get(query)
    if known is not None and known[0] == metadata_keys:
        return known[1]
    entry = read_entry(broker, query)
    if entry is None:
        raise NoSuchQuery(query, known_queries(broker))
    found = Committed(state_of(broker, query), entry.shards, entry.fence)
    if metadata_keys == broker.get_metadata_of(names):
        _known[broker][query] = (metadata_keys, found)
    return found


def known_queries(broker: Broker) -> list[str]:
    return sorted(
        metadata_key.split("/")[1]
        for metadata_key in broker.list_metadata("query/")
        if metadata_key.endswith("/ledger")
    )


def query_named(known: Sequence[str], name: str) -> str:
    """Return a query by its name, or by that name in upper case, as SQL stores it."""
    for each in (name, name.upper()):
        if each in known:
            return each
    raise NoSuchQuery(name, list(known))
