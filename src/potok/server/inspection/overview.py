"""All queries of a log, the worst first."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from potok.clock import now_ms
from potok.redact import redact_url
from potok.server.access.callers import READ, SCOPES, Caller
from potok.server.access.guard import caller_of
from potok.server.access.rights import may_see_query
from potok.server.api.changes import EVENTS, sse
from potok.server.api.tables import answer
from potok.server.context import Site, site_of
from potok.server.figures.overview import totals
from potok.server.inspection.live import LiveFigures
from potok.statements.queries.query_tables import QueryTables
from potok.version import __version__

router = APIRouter(tags=["operations"])


@router.get("/overview", summary="All queries of the log, the worst first")
async def overview(request: Request) -> Response:
    """Return figures of each query, wherever it runs: state, records per second, lag in records and milliseconds,
    watermark lag, dead letters and restarts; and what the caller may do."""
    caller = caller_of(request.scope)
    caller.require_some(READ)
    site = site_of(request)
    scopes = [scope for scope in SCOPES if caller.may_some(scope)]
    return await site.work.answer(lambda: answer({**_server(site), "scopes": scopes, **_figures(site, caller)}))


@router.get("/overview/live", summary="Follow the overview", responses=EVENTS, response_model=None)
async def live(request: Request) -> Response:
    """Send the overview twice a second; the first event has the totals of the last minute as `history`."""
    caller, site = caller_of(request.scope), site_of(request)
    caller.require_some(READ)

    def first() -> dict[str, Any]:
        found = _figures(site, caller)
        return {**found, "history": site.figures.totals_history() if caller.may(READ) else []}

    return await sse(request, lambda: LiveFigures(lambda: _figures(site, caller), first))


def _server(site: Site) -> dict[str, Any]:
    database = site.database
    return {
        "version": __version__,
        "log": redact_url(database.broker.url),
        "serves": "programs" if isinstance(database, QueryTables) else "catalog",
    }


def _figures(site: Site, caller: Caller) -> dict[str, Any]:
    """Return the queries that the caller may see, and their totals."""
    rows = [row for row in site.figures.overview() if may_see_query(caller, site.database, row["query"])]
    return {"at": now_ms(), "totals": totals(rows), "queries": rows}
