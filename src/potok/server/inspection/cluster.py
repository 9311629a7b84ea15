"""The process that serves, its Spark, and the groups of consumers and their members."""

from __future__ import annotations

import os
import platform
import resource
import socket
import sys
import threading
import time
from typing import Any

from fastapi import APIRouter, Request, Response

from potok.clock import now_ms
from potok.log.plain_groups import members, queue_standing, standing
from potok.log.queues.queue_store import queues
from potok.server.access.guard import caller_of
from potok.server.access.tokens import READ
from potok.server.api.tables import answer
from potok.server.context import Site, site_of
from potok.server.errors import NotThere
from potok.server.problems import NOT_THERE
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.tables import known_queries
from potok.state.entry import metadata_key_of
from potok.statements.push.transient import is_transient
from potok.version import __version__

router = APIRouter(tags=["operations"])

_BEGAN = time.monotonic()


@router.get("/cluster", summary="Driver, Spark, holders of queries, and groups")
async def cluster(request: Request) -> Response:
    caller_of(request.scope).require(READ)
    site = site_of(request)

    def work() -> Response:
        return answer(
            {
                "driver": _driver(site),
                "spark": _spark(),
                "holders": _holders(site),
                "groups": _groups(site),
            }
        )

    return await site.work.answer(work)


@router.get("/groups", summary="Consumer groups and queues")
async def groups(request: Request) -> Response:
    caller_of(request.scope).require(READ)
    site = site_of(request)
    return await site.work.answer(lambda: answer({"groups": _groups(site)}))


@router.get("/groups/{name}", summary="Members, partitions and lag of a group", responses=NOT_THERE)
async def group(request: Request, name: str) -> Response:
    caller_of(request.scope).require(READ)
    site = site_of(request)

    def work() -> Response:
        broker = site.database.broker
        described, queued = broker.describe_group(name), queues(broker).get(name, [])
        if not described.members and not described.committed and not queued:
            raise NotThere(f'there is no group "{name}"', hint="GET /groups lists them")
        return answer(
            {
                "group": name,
                "members": members(described),
                "partitions": standing(broker, described),
                "queues": {topic: queue_standing(broker, name, topic, now_ms()) for topic in queued},
            }
        )

    return await site.work.answer(work)


def _driver(site: Site) -> dict[str, Any]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "version": __version__,
        "python": platform.python_version(),
        "uptime_ms": int(1000 * (time.monotonic() - _BEGAN)),
        "cpu_ms": int(1000 * (usage.ru_utime + usage.ru_stime)),
        "memory_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "threads": threading.active_count(),
        "push_queries": len(site.pushes.ids) + len(site.feeds),
        "runs_queries": site.database.runs,
    }


def _spark() -> dict[str, Any] | None:
    """Return what the Spark of this process is doing; None if it runs in another one."""
    if "pyspark" not in sys.modules:
        return None
    from potok.spark.activity import spark_activity

    return spark_activity()


def _holders(site: Site) -> list[dict[str, Any]]:
    """Return the process that started each query last, and how often it was started."""
    broker, found = site.database.broker, []
    for query in filter(lambda name: not is_transient(name), known_queries(broker)):
        holder = broker.get_metadata(metadata_key_of(query, "holder"))
        entry = read_entry(broker, query)
        starts = 0 if entry is None else entry.epoch
        died = 0 if entry is None else len(entry.ended)
        found.append({"query": query, "process": (holder or b"").decode(), "starts": starts, "died": died})
    return found


def _groups(site: Site) -> list[dict[str, Any]]:
    broker, rows = site.database.broker, []
    for name in broker.groups():
        described = broker.describe_group(name)
        lag = sum(row["lag"] or 0 for row in standing(broker, described))
        rows.append(
            {
                "group": name,
                "kind": "consumers",
                "topics": described.topics,
                "members": members(described),
                "lag": lag,
                "rebalances": described.rebalances,
            }
        )
    for name, topics in queues(broker).items():
        parts = [row for topic in topics for row in queue_standing(broker, name, topic, now_ms())]
        lag = sum(row["ready"] + row["out"] + row["waiting"] for row in parts)
        rows.append({"group": name, "kind": "queue", "topics": topics, "members": [], "lag": lag, "rebalances": None})
    return rows
