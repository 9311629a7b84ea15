"""State shared by all requests of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.requests import HTTPConnection, Request

from potok.monitoring import families
from potok.monitoring.monitor import Monitor
from potok.monitoring.scrape import Scrape
from potok.server.access.audit import Audit
from potok.server.access.callers import READ
from potok.server.access.guard import caller_of
from potok.server.access.held_bytes import HeldBytes
from potok.server.access.limits import Limits
from potok.server.access.rights import inputs_of, query_name
from potok.server.access.work import Work
from potok.server.api.feeds import Feed
from potok.server.api.snapshot_feed import SnapshotFeed
from potok.server.commands.declared import DeclaredAggregates
from potok.server.commands.results import CommandResults
from potok.server.errors import BadRequest
from potok.server.figures.figures import Figures
from potok.server.inspection.live import LiveFigures
from potok.server.ksql.statuses import Statuses
from potok.server.positions.waits import PositionWaits
from potok.server.pushes import Pushes
from potok.server.sagas import KnownSagas
from potok.server.tables.table_reads import TableReads, find_source
from potok.snapshots.tables import NoSuchQuery, query_named
from potok.statements.database import Database
from potok.statements.queries.readings import database_monitor


class Site:
    """A database and the work on it for clients."""

    def __init__(self, database: Database, limits: Limits, audit: Audit | None = None) -> None:
        self.database, self.limits, self.audit = database, limits, audit or Audit()
        self.work = Work(database, limits)
        most_bodies = max(limits.bodies_bytes, limits.body_bytes)
        self.bodies = HeldBytes(most_bodies, min(max(limits.connection_bytes, limits.body_bytes), most_bodies))
        """Bodies of unanswered requests, and lines of requests that stream rows."""
        self.unsent = HeldBytes(max(limits.unsent_bytes, limits.answer_bytes), limits.answer_bytes)
        """Computed and unsent responses."""
        self.pushes = Pushes(limits.push_queries)
        self.reads = TableReads(database, limits.rows)
        self.sagas = KnownSagas(database)
        self.statuses = Statuses(database)
        self.waits = PositionWaits(database.broker)
        self.aggregates = DeclaredAggregates(database)
        self.results = CommandResults(database, self.pushes.pool)
        self.figures = Figures(database)
        self.feeds: set[Feed | SnapshotFeed[Any] | LiveFigures] = set()
        self.address = "localhost:8088"

    def monitored_by(self, monitor: Monitor | None) -> Monitor:
        """Register what this server measures with a monitor. Without one, make one for the queries too."""
        monitor = monitor or database_monitor(self.database)
        monitor.registry.add(self._collect)
        return monitor

    def _collect(self, scrape: Scrape) -> None:
        scrape.add(families.PUSH_QUERIES, len(self.pushes.ids))
        scrape.add(families.PULL_SECONDS, self.reads.seconds.read(), "key")
        scrape.add(families.PULL_SECONDS, self.work.seconds.read(), "sql")

    def end_streams(self) -> None:
        """End endless responses; call from any thread."""
        for feed in list(self.feeds):
            feed.close()
        self.pushes.close_all()
        self.waits.close()
        self.results.close()

    def close(self) -> None:
        self.end_streams()
        self.figures.close()
        self.reads.release()
        self.pushes.pool.shutdown(wait=False)
        self.work.close()
        self.audit.close()


def site_of(connection: HTTPConnection) -> Site:
    site = connection.app.state.site
    assert isinstance(site, Site)
    return site


def require_source(connection: HTTPConnection, name: str, scope: str = READ) -> None:
    """Raise if the caller may not read or write a stream or table, by the name that the catalog has for it."""
    caller = caller_of(connection.scope)
    if not caller.may(scope):
        caller.require_some(scope)
        found = find_source(site_of(connection).database.catalog, name)
        caller.require(scope, name if found is None else found.name)


async def require_query(
    connection: HTTPConnection, query_id: str, scope: str = READ, *, with_inputs: bool = False
) -> None:
    """Raise if the caller may not see or change a query; `with_inputs`, the records of the topics that it reads."""
    caller, site = caller_of(connection.scope), site_of(connection)
    if caller.may(scope):
        return
    caller.require_some(scope)

    def names() -> tuple[str, ...]:
        try:
            found = query_named(site.figures.names(), query_id)
        except NoSuchQuery:
            return (query_id,)
        return inputs_of(site.database, found) if with_inputs else (query_name(site.database, found),)

    caller.require(scope, *await site.work.answer(names))


_ASKED_FOR = ("sql", "ksql", "properties", "streamsProperties", "variables", "sessionVariables", "queryId")


async def json_body(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request, whatever its content type."""
    found = json_object(await request.body())
    # Unused fields are not kept while the request is processed.
    return {name: found[name] for name in _ASKED_FOR if name in found}


MOST_NESTED = 250_000
"""Maximum number of arrays and objects in a body: each takes twenty times its characters, and parsing blocks."""


def json_object(text: bytes | str) -> dict[str, Any]:
    data = text if isinstance(text, bytes) else text.encode()
    if len(data) > MOST_NESTED and data.count(b"[") + data.count(b"{") > MOST_NESTED:
        raise BadRequest(f"the body has more than {MOST_NESTED:,} arrays and objects", hint="send the statement alone")
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequest(
            f"the body is not JSON: {error}", hint='send a JSON object, for example {"sql": "..."}'
        ) from error
    if not isinstance(found, dict):
        raise BadRequest("the body is not a JSON object", hint='send, for example, {"sql": "..."}')
    return found


def object_of(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object under a name; empty if missing."""
    found = body.get(name) or {}
    if not isinstance(found, dict):
        raise BadRequest(f'"{name}" is not an object', hint=f'write {{"{name}": {{"name": "value"}}}}')
    return found


def text_of(body: dict[str, Any], *names: str) -> str:
    """Return the statement in a body, under any of these names."""
    for name in names:
        if isinstance(body.get(name), str) and body[name].strip():
            return str(body[name])
    raise BadRequest(f'"{names[0]}" is missing', hint=f'write {{"{names[0]}": "SHOW STREAMS;"}}')
