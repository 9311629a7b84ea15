"""Tables of any query of the log: search, history, changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, Query, Request, Response

from potok.server.access.guard import answer_of, caller_of
from potok.server.access.rights import may_see_query
from potok.server.access.tokens import READ
from potok.server.answers import AnswerSize
from potok.server.api.changes import EVENT_ID, EVENTS, FROM, sse
from potok.server.api.snapshot_feed import SnapshotFeed
from potok.server.api.tables import answer
from potok.server.context import Site, require_query, site_of
from potok.server.errors import BadRequest, TooManyRows
from potok.server.instants import instant_ms
from potok.server.ksql.json_rows import dump
from potok.server.problems import BAD, NOT_THERE
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import read_progress
from potok.snapshots.table_search import Search, search_table, versions_of_key
from potok.snapshots.table_view import WindowedKey
from potok.snapshots.tables import Tables, known_queries, query_named
from potok.statements.push.transient import is_transient

router = APIRouter(tags=["tables"])

_INSTANT = "Milliseconds since 1970, or an ISO time."


class Change(NamedTuple):
    """A row as a feed compares it."""

    key: Any
    value: Any


@router.get("/queries/{query_id}/tables", summary="The tables of a query", responses=NOT_THERE)
async def tables(request: Request, query_id: str) -> Response:
    """Return name, key type, windows, retained versions and number of keys of each table."""
    await require_query(request, query_id)
    site = site_of(request)
    return await site.work.answer(lambda: answer({"tables": _described(site, query_id)}))


@router.get("/query-tables", summary="The tables of all queries of the log")
async def all_tables(request: Request) -> Response:
    caller, site = caller_of(request.scope), site_of(request)
    caller.require_some(READ)

    def work() -> Response:
        queries = [name for name in known_queries(site.database.broker) if not is_transient(name)]
        queries = [name for name in queries if may_see_query(caller, site.database, name)]
        return answer({"tables": [table for query in queries for table in _described(site, query)]})

    return await site.work.answer(work)


@router.get("/queries/{query_id}/tables/{table}", summary="Search the rows of a table", responses=BAD | NOT_THERE)
async def rows(
    request: Request,
    query_id: str,
    table: str,
    key: str | None = Query(None, description="The row of this key, or those of its windows."),
    prefix: str | None = Query(None, description="Keys that begin with this text."),
    low: str | None = Query(None, alias="from", description="The first key."),
    high: str | None = Query(None, alias="to", description="The end key (exclusive)."),
    find: str = Query("", description="Keys that contain this text."),
    at: str | None = Query(None, description=f"Windows that hold this instant. {_INSTANT}"),
    window_from: str | None = Query(None, description=f"Windows that begin at this instant or later. {_INSTANT}"),
    window_to: str | None = Query(None, description=f"Windows that begin before this instant. {_INSTANT}"),
    as_of: str | None = Query(None, description=f"The rows at this instant, of a table with versions. {_INSTANT}"),
    limit: int = Query(100, ge=1, description="Maximum number of rows."),
) -> Response:
    """Return rows in key order, as of one committed batch; `more` if there may be others."""
    site = await _reading(request, query_id)
    if limit > site.limits.rows:
        raise BadRequest(f"limit exceeds the maximum of {site.limits.rows:,}", hint="request the rest with from")
    wanted = Search(key, prefix, low, high, find, *map(instant_ms, (at, window_from, window_to, as_of)))

    def work() -> Response:
        opened = Tables(site.database.broker, _name(site, query_id))
        found = search_table(opened, table, wanted, limit)
        size = AnswerSize(site.limits.answer_bytes, answer_of(request.scope))
        listed = size.array(dump(row_of(*row)) for row in found.rows)
        rest = dump({"more": found.more, "batch": found.batch})
        return Response(b'{"rows":' + listed + b"," + rest[1:], media_type="application/json")

    return await site.work.answer(work)


@router.get("/queries/{query_id}/tables/{table}/history", summary="The versions of a row", responses=BAD | NOT_THERE)
async def history(request: Request, query_id: str, table: str, key: str) -> Response:
    """Return the retained versions of a row, the oldest first; a value of null is a delete."""
    site = await _reading(request, query_id)

    def work() -> Response:
        opened = Tables(site.database.broker, _name(site, query_id))
        versions = versions_of_key(opened, table, key)
        return answer({"versions": [{"since_ms": since_ms, "value": value} for since_ms, value in versions]})

    return await site.work.answer(work)


@router.get(
    "/queries/{query_id}/tables/{table}/changes",
    summary="Follow the changes of a table of a query",
    responses=EVENTS,
    response_model=None,
)
async def changes(
    request: Request, query_id: str, table: str, last_event_id: str | None = EVENT_ID, start: str = FROM
) -> Response:
    """Send each row that a commit has changed; `value` is null and `deleted` true if it was deleted."""
    site = await _reading(request, query_id)
    return await sse(request, lambda: RowFeed(site, _name(site, query_id), table, last_event_id, start))


class RowFeed(SnapshotFeed[Change]):
    """The changes of a table of any query, compared between commits."""

    def __init__(self, site: Site, query: str, table: str, last_id: str | None, start: str) -> None:
        self._site, self._query, self._table = site, query, table
        super().__init__(last_id, start)

    def _committed(self) -> int:
        entry = read_entry(self._site.database.broker, self._query)
        return 0 if entry is None else entry.batch

    def _read(self) -> dict[bytes, Change]:
        most = self._site.limits.rows
        found = search_table(Tables(self._site.database.broker, self._query), self._table, Search(), most)
        if found.more:
            raise TooManyRows(most)
        return {dump(row_of(key, None)): Change(key, value) for key, value in found.rows}

    def _changes(self, changed: Sequence[tuple[bytes, Change]], gone: Sequence[tuple[bytes, Change]]) -> list[object]:
        rows = [row_of(row.key, row.value) for _, row in changed]
        rows += [{**row_of(row.key, None), "deleted": True} for _, row in gone]
        return [{"batch": self._batch, **row} for row in rows]


def row_of(key: Any, value: Any) -> dict[str, Any]:
    if isinstance(key, WindowedKey):
        return {"key": key.key, "start": key.start_ms, "end": key.end_ms, "value": value}
    return {"key": key, "value": value}


def _described(site: Site, query_id: str) -> list[Mapping[str, Any]]:
    broker, name = site.database.broker, _name(site, query_id)
    progress = read_progress(broker, name)
    keys = {} if progress is None else progress.state_keys
    return [
        {
            "table": table,
            "query": name,
            "key_type": "dynamic" if layout.key_type is None else str(layout.key_type),
            "value_type": "dynamic" if layout.value_type is None else str(layout.value_type),
            "window": layout.window or None,
            "window_ms": layout.window_ms if layout.window == "fixed" else None,
            "history_ms": layout.history_ms or None,
            "open_matches": layout.form == "partials",
            "keys": keys.get(table),
        }
        for table, layout in sorted(Tables(broker, name).layouts().items())
    ]


async def _reading(request: Request, query_id: str) -> Site:
    """Rows may hold records of the topics that the query reads, in the tables of joins and windows."""
    await require_query(request, query_id, with_inputs=True)
    return site_of(request)


def _name(site: Site, query_id: str) -> str:
    return query_named(known_queries(site.database.broker), query_id)
