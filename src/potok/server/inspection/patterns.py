"""Aggregates and open matches of patterns, of all queries of a log."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from potok.server.access.guard import caller_of
from potok.server.access.rights import may_see_query
from potok.server.access.tokens import READ
from potok.server.api.tables import answer
from potok.server.context import site_of
from potok.snapshots.patterns.declared_aggregates import aggregates_in
from potok.snapshots.progress import read_progress
from potok.snapshots.tables import Tables, known_queries
from potok.state.entry import metadata_key_of
from potok.statements.push.transient import is_transient

router = APIRouter(tags=["aggregates and patterns"])


@router.get("/aggregates", summary="List the aggregates with their commands")
async def aggregates(request: Request) -> Response:
    """Return name, query, topic of events, tables and commands of each aggregate; its instances are the rows of its
    tables, and the history of one are the records of its key in the topic of events."""
    caller, site = caller_of(request.scope), site_of(request)
    caller.require_some(READ)

    def work() -> Response:
        broker, found = site.database.broker, list[dict[str, Any]]()
        for query in known_queries(broker):
            data = broker.get_metadata(metadata_key_of(query, "description"))
            tables = [] if data is None else Tables(broker, query).names()
            for one in () if data is None else aggregates_in(query, data):
                if not caller.may(READ, one.name):
                    continue
                commands = [
                    {"name": command.name, "doc": command.doc, "schema": command.schema}
                    for command in one.commands.values()
                ]
                own = [table for table in tables if table == one.name or table.startswith(f"{one.name}.")]
                found.append(
                    {"name": one.name, "query": query, "events": one.events_topic, "tables": own, "commands": commands}
                )
        return answer({"aggregates": found})

    return await site.work.answer(work)


@router.get("/open-matches", summary="List the patterns with the number of keys that have open matches")
async def open_matches(request: Request) -> Response:
    """Return query and table of each pattern; the rows of that table are the open matches."""
    caller, site = caller_of(request.scope), site_of(request)
    caller.require_some(READ)

    def work() -> Response:
        broker, found = site.database.broker, list[dict[str, Any]]()
        for query in filter(lambda name: not is_transient(name), known_queries(broker)):
            if not may_see_query(caller, site.database, query):
                continue
            progress = read_progress(broker, query)
            keys = {} if progress is None else progress.state_keys
            for table, layout in sorted(Tables(broker, query).layouts().items()):
                if layout.form == "partials":
                    found.append({"query": query, "table": table, "keys": keys.get(table)})
        return answer({"patterns": found})

    return await site.work.answer(work)
