"""One query: its topology, its figures, where it would resume, and its settings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Query, Request, Response

from potok.log.broker import Broker
from potok.server.access.callers import ADMIN, READ
from potok.server.access.guard import caller_of
from potok.server.api.changes import EVENTS, sse
from potok.server.api.tables import answer
from potok.server.context import Site, require_query, site_of
from potok.server.errors import BadRequest, NotAllowed
from potok.server.inspection.live import LiveFigures
from potok.server.problems import NOT_THERE, problem_described
from potok.settings import public_name
from potok.snapshots.checkpoints import Checkpoint, read_checkpoint
from potok.snapshots.progress import read_description
from potok.snapshots.tables import query_named
from potok.state.entry import Entry
from potok.statements.database import Database
from potok.statements.queries.query_tables import QueryTables
from potok.statements.queries.runner import QUERY_ACTIONS

router = APIRouter(tags=["queries"])


@router.get("/queries/{query_id}/topology", summary="The steps of a query", responses=NOT_THERE)
async def topology(request: Request, query_id: str) -> Response:
    """Return the steps as boxes with their upstreams, how each runs (`native` or `python`, with the reason) and where
    the program declares it, the tables, and the panels of a demo."""
    site = await _reading(request, query_id)
    return await site.work.answer(lambda: answer(site.figures.feed(_known(site, query_id)).topology()))


@router.get("/queries/{query_id}/figures", summary="The figures of a query", responses=NOT_THERE)
async def figures(
    request: Request, query_id: str, history: bool = Query(False, description="With the last two minutes.")
) -> Response:
    site = await _reading(request, query_id)
    letters = await _may_see_records(request, query_id)
    return await site.work.answer(lambda: answer(_figures(site, query_id, letters=letters, history=history)))


@router.get(
    "/queries/{query_id}/live",
    summary="Follow the figures of a query",
    responses={**EVENTS, **NOT_THERE},
    response_model=None,
)
async def live(request: Request, query_id: str) -> Response:
    """Send the figures twice a second; the first event has the history of the last two minutes, the last one the state
    in which the server stops."""
    site = await _reading(request, query_id)
    letters = await _may_see_records(request, query_id)

    def work() -> LiveFigures:
        name = _known(site, query_id)
        return LiveFigures(
            lambda: _figures(site, name, letters=letters),
            lambda: _figures(site, name, letters=letters, history=True),
            lambda: _figures(site, name, letters=letters, fresh=True),
        )

    return await sse(request, work)


@router.get("/queries/{query_id}/state", summary="Where a query would resume", responses=NOT_THERE)
async def state(request: Request, query_id: str) -> Response:
    """Return the last committed batch, the offsets with lag and stream time, the watermarks, the size of each shard,
    and the batch that was started and not committed."""
    site = await _reading(request, query_id)

    def work() -> Response:
        broker = site.database.broker
        return answer(_checkpoint(broker, read_checkpoint(broker, _known(site, query_id))))

    return await site.work.answer(work)


@router.get("/queries/{query_id}/explain", summary="How the steps of a query run, and why", responses=NOT_THERE)
async def explain(request: Request, query_id: str) -> Response:
    """Return the stored description of each step: kind, types, expressions, upstreams, and why it runs as Python."""
    site = await _reading(request, query_id)
    printable = site.database.settings.printable().items() if caller_of(request.scope).may(READ) else ()
    settings = dict(public_name(*item) for item in printable)

    def work() -> Response:
        name = _known(site, query_id)
        found = read_description(site.database.broker, name) or {"name": name, "steps": [], "tables": []}
        info = next((info for info in site.database.queries() if info.query_id == name), None)
        statement = info.text if info is not None and info.kind != "PROGRAM" else None
        return answer({**found, "statement": statement, "settings": settings})

    return await site.work.answer(work)


@router.post(
    "/queries/{query_id}/diff",
    summary="Compare a query with its program on disk",
    responses={400: problem_described("The program does not run in this process, or cannot be loaded."), **NOT_THERE},
)
async def diff(request: Request, query_id: str) -> Response:
    """Load the program as it is on disk, in a process of its own, and return what it changes: step, change, and whether
    the state of the query is compatible. Needs the scope `admin`, because it runs code of the program."""
    await require_query(request, query_id, ADMIN)
    site = site_of(request)

    def work() -> Response:
        name, database = _known(site, query_id), site.database
        if not isinstance(database, QueryTables):
            raise BadRequest("statements have no program on disk", hint="GET .../explain shows the statement")
        changes = database.differences(name)
        return answer({"query": name, "changes": changes, "fits": all(change["fits"] for change in changes)})

    return await site.work.change(work)


async def _reading(request: Request, query_id: str) -> Site:
    await require_query(request, query_id)
    return site_of(request)


def _known(site: Site, query_id: str) -> str:
    """Return the name of a query as the log has it; SQL stores names in upper case."""
    return query_named(site.figures.names(), query_id)


async def _may_see_records(request: Request, query_id: str) -> bool:
    """Whether the caller may see dead letters and rows of a query, which hold records of the topics that it reads."""
    try:
        await require_query(request, query_id, with_inputs=True)
    except NotAllowed:
        return False
    return True


def _figures(site: Site, query_id: str, *, letters: bool, history: bool = False, fresh: bool = False) -> dict[str, Any]:
    name = _known(site, query_id)
    found = site.figures.snapshot(name, history=history, fresh=fresh)
    if not letters:
        found = {field: value for field, value in found.items() if field not in ("recent_dead_letters", "panels")}
    row = site.figures.row(name)
    shown = {field: row[field] for field in ("state", "error", "kind", "health", "shadow_of", "statement")}
    return {**found, **shown, "actions": list(_actions(site.database, name))}


def _actions(database: Database, query: str) -> tuple[str, ...]:
    """Return what can be done to a query here."""
    if isinstance(database, QueryTables):
        return database.actions(query)
    return QUERY_ACTIONS if query in database.catalog_state().queries else ()


def _checkpoint(broker: Broker, found: Checkpoint) -> dict[str, Any]:
    entry, progress = found.entry, found.progress
    return {
        "query": found.query,
        "start": entry.epoch,
        "batch": entry.batch,
        "committed_at_ms": progress.committed_at_ms if progress else None,
        "pending": None if found.pending is None else {"batch": found.pending.number, "records": found.pending.records},
        "void": [asdict(one) for one in found.voids],
        "state_in": found.state,
        "shards": list(found.shards),
        "tables": [{"table": table, "keys": keys} for table, keys in sorted(found.keys.items())],
        "offsets": _offsets(broker, entry),
        "watermarks": [
            {
                "step": step,
                "watermark_ms": entry.watermarks.get(step),
                "next_end_ms": entry.next_ends.get(step),
                "next_timer_ms": entry.next_timers.get(step),
            }
            for step in sorted({*entry.watermarks, *entry.next_ends, *entry.next_timers})
        ],
    }


def _offsets(broker: Broker, entry: Entry) -> list[dict[str, Any]]:
    ends = broker.end_offsets_of([topic for topic in sorted(entry.offsets.topics) if broker.has_topic(topic)])
    return [
        {
            "topic": topic,
            "partition": part,
            "offset": offset,
            "end_offset": ends.get(topic, {}).get(part),
            "lag": max(0, ends.get(topic, {}).get(part, offset) - offset),
            "stream_time_ms": entry.stream_times.get(topic, {}).get(part),
            "idle": (topic, part) in entry.offsets.idle,
        }
        for topic, parts in sorted(entry.offsets.topics.items())
        for part, offset in sorted(parts.items())
    ]
