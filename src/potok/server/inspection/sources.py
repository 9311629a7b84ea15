"""Gateways, captures and destinations outside the log."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from potok.clock import now_ms
from potok.log.broker import Broker
from potok.runtime.webhooks.journal import WebhookJournal
from potok.runtime.webhooks.records import attempts_topic
from potok.server.access.guard import caller_of
from potok.server.access.tokens import READ
from potok.server.api.tables import answer
from potok.server.context import Site, site_of
from potok.snapshots.progress import read_description, read_progress
from potok.snapshots.source_status import CAPTURE, GATEWAY, SILENT_MS, SourceStatus, read_source_statuses
from potok.snapshots.tables import known_queries
from potok.statements.push.transient import is_transient

router = APIRouter(tags=["sources and sinks"])


@router.get("/gateway", summary="Listeners and connectors")
async def gateway(request: Request) -> Response:
    """Return what each listener has received, landed, lost by reason and buffered, wherever it runs; and the connectors
    of the SQL catalog."""
    site = _reading(request)
    return await site.work.answer(
        lambda: answer({"listeners": _of_kind(site, GATEWAY), "connectors": _connectors(site)})
    )


@router.get("/captures", summary="Captures of databases")
async def captures(request: Request) -> Response:
    """Return the state of each capture: changes, how far the database's log is ahead, and the snapshots."""
    site = _reading(request)
    return await site.work.answer(lambda: answer({"captures": _of_kind(site, CAPTURE)}))


@router.get("/sinks", summary="Destinations outside the log, and endpoints of webhooks")
async def sinks(request: Request) -> Response:
    site = _reading(request)

    def work() -> Response:
        broker = site.database.broker
        names = [name for name in known_queries(broker) if not is_transient(name)]
        return answer(
            {
                "sinks": [sink for name in names for sink in _sinks(broker, name)],
                "webhooks": [hook for name in names for hook in _webhooks(broker, name)],
            }
        )

    return await site.work.answer(work)


def _of_kind(site: Site, kind: str) -> list[dict[str, Any]]:
    found = [one for one in read_source_statuses(site.database.broker) if one.kind == kind]
    return [_shown(one) for one in found]


def _shown(one: SourceStatus) -> dict[str, Any]:
    """Return a report; one of a process that has ended without saying so is `died`."""
    died = one.running and now_ms() - one.at_ms > SILENT_MS
    state = "died" if died else "running" if one.running else "stopped"
    return {"name": one.name, "process_state": state, "process": one.process, "reported_at_ms": one.at_ms, **one.status}


def _connectors(site: Site) -> list[dict[str, Any]]:
    database = site.database
    return [asdict(database.connector(name)) for name in sorted(database.catalog.connectors)]


def _sinks(broker: Broker, query: str) -> list[dict[str, Any]]:
    """Return the steps of a query that deliver outside the log."""
    described, progress = read_description(broker, query) or {}, read_progress(broker, query)
    counts = {} if progress is None else progress.steps
    return [
        {
            "query": query,
            "step": step["name"],
            "kind": step["kind"],
            "detail": step["detail"],
            "guarantee": step["guarantee"],
            "records": counts.get(step["name"], {}).get("in", 0),
            "query_state": None if progress is None else progress.state,
            "error": "" if progress is None else progress.error,
        }
        for step in described.get("steps", ())
        if step["role"] == "sink" and not step["topic"]
    ]


def _webhooks(broker: Broker, query: str) -> list[dict[str, Any]]:
    if not broker.has_topic(attempts_topic(query)):
        return []
    return [{"query": query, **asdict(endpoint)} for endpoint in WebhookJournal(broker, query).endpoints()]


def _reading(request: Request) -> Site:
    caller_of(request.scope).require(READ)
    return site_of(request)
