"""ksqlDB's REST API, statements: /ksql, and information about the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from potok.clock import now_ms
from potok.errors import PotokError
from potok.server.access.audit import TARGET
from potok.server.access.guard import answer_of, caller_of
from potok.server.access.held_bytes import Holding
from potok.server.access.rights import allow, query_name, visible_entity
from potok.server.access.tokens import READ
from potok.server.access.work import properties_of
from potok.server.answers import AnswerSize
from potok.server.context import Site, json_body, object_of, site_of, text_of
from potok.server.errors import NotThere
from potok.server.ksql.entities import entity_of
from potok.server.ksql.json_rows import dump
from potok.server.positions.headers import position_of_all, with_position
from potok.server.problems import QUERY_ENDPOINT, ksql_response
from potok.server.run_statement import described, run_for
from potok.sql.errors import Refused
from potok.sql.syntax import ast
from potok.statements.results import Push
from potok.version import __version__

SPOKEN = "0.29.0"
"""The version of ksqlDB whose API this is; clients request it first."""


class Failed(Exception):
    """A statement of a script that failed, and the results of those before it."""

    def __init__(self, error: PotokError, statement: str, entities: list[orjson.Fragment]) -> None:
        super().__init__(str(error))
        self.error, self.statement, self.entities = error, statement, entities


async def ksql(request: Request) -> Response:
    site, text = site_of(request), ""
    try:
        body = await json_body(request)
        text = text_of(body, "ksql", "sql")
        variables = object_of(body, "sessionVariables")
        properties = properties_of(body.get("streamsProperties", body.get("properties")))
        script = await site.work.script(text, variables)
        request.scope[TARGET] = described(script)
        allow(script, caller_of(request.scope), site.database, properties)
        _check_endpoint(script)
        written, holding = list[str](), answer_of(request.scope)
        response = await site.work.carry_out(
            script, lambda: dump(_carry_out(site, script, properties, variables, written, holding, request.scope))
        )
    except Failed as failed:
        return ksql_response(failed.error, statement=failed.statement, entities=failed.entities)
    except _ForQueries as error:
        return ksql_response(error, statement=text, code=QUERY_ENDPOINT)
    except PotokError as error:
        return ksql_response(error, statement=text) if text else ksql_response(error)
    return with_position(Response(response, media_type="application/json"), position_of_all(written))


class _ForQueries(Refused):
    """A query was sent to the wrong path."""


def _check_endpoint(script: Sequence[ast.Parsed]) -> None:
    for parsed in script:
        if isinstance(parsed.statement, ast.Query | ast.Print):
            hint = "POST it to /query-stream or /query"
            raise _ForQueries("SELECT and PRINT are not supported here", hint=hint, location=parsed.at)


def _carry_out(
    site: Site,
    script: Sequence[ast.Parsed],
    properties: Mapping[str, str],
    variables: Mapping[str, Any],
    written: list[str],
    holding: Holding,
    scope: Scope,
) -> list[orjson.Fragment]:
    """Execute the statements; add the positions of inserted rows to `written`."""
    session, entities = site.work.session(variables), list[orjson.Fragment]()
    size = AnswerSize(site.limits.answer_bytes, holding)
    for parsed in script:
        try:
            result = run_for(scope, site, session, parsed, properties)
            assert not isinstance(result, Push)
            written.append(getattr(result, "position", ""))
            entity = entity_of(parsed, result, site.database, session)
            if entity is not None:
                shown = visible_entity(entity, parsed.statement, caller_of(scope), site.database)
                entities.append(orjson.Fragment(size.add(dump(shown))))
        except PotokError as error:
            raise Failed(error, parsed.text, entities) from error
    return entities


async def info(_request: Request) -> Response:
    response = {
        "version": SPOKEN,
        "kafkaClusterId": "potok",
        "ksqlServiceId": "default_",
        "serverStatus": "RUNNING",
        "potokVersion": __version__,
    }
    return Response(dump({"KsqlServerInfo": response}), media_type="application/json")


async def healthcheck(request: Request) -> Response:
    """Report whether the log responds and the queries run."""
    site = site_of(request)
    log_is_well = await _is_well(site)
    shared = site.database.shared
    runner_is_well = shared is None or shared.is_active
    details = {
        "metastore": {"isHealthy": log_is_well},
        "kafka": {"isHealthy": log_is_well},
        "commandRunner": {"isHealthy": runner_is_well},
    }
    is_healthy = log_is_well and runner_is_well
    response = {"isHealthy": is_healthy, "details": details, "serverState": "READY"}
    return Response(dump(response), 200 if is_healthy else 503, media_type="application/json")


async def _is_well(site: Site) -> bool:
    try:
        await site.work.look(site.database.broker.topics)
    except PotokError:
        return False
    return True


async def statuses(request: Request) -> Response:
    caller, site = caller_of(request.scope), site_of(request)
    caller.require_some(READ)
    found = await site.work.answer(site.statuses.all)
    if not caller.may(READ):
        found = {name: one for name, one in found.items() if caller.may(READ, _named_in(site, name))}
    return Response(
        dump({"commandStatuses": {name: response["status"] for name, response in found.items()}}),
        media_type="application/json",
    )


async def status(request: Request) -> Response:
    site, command_id = site_of(request), request.path_params["command_id"]
    try:
        caller_of(request.scope).require(READ, _named_in(site, command_id))
        found = await site.work.answer(lambda: site.statuses.find(command_id))
        if found is None:
            raise NotThere(f'there is no command "{command_id}"', hint="GET /status lists them")
    except PotokError as error:
        return ksql_response(error)
    return Response(dump(found), media_type="application/json")


def _named_in(site: Site, command_id: str) -> str:
    """Return the name in an id such as `stream/ORDERS/create`, for a query that of its stream or table."""
    name = "/".join(command_id.split("/")[1:-1]).strip("`")
    return query_name(site.database, name)


async def cluster_status(request: Request) -> Response:
    site = site_of(request)
    caller_of(request.scope).require(READ)
    response = await site.work.answer(lambda: _cluster(site))
    return Response(dump(response), media_type="application/json")


def _cluster(site: Site) -> dict[str, Any]:
    broker, sources = site.database.broker, site.database.catalog.sources.values()
    per_query = {
        query_id: {
            "activeStores": sorted(source.name for source in sources if source.table_of == query_id),
            "activePartitions": [
                {"topic": topic, "partition": partition}
                for topic in wanted.topology.source_topics
                if broker.has_topic(topic)
                for partition in range(broker.partitions(topic))
            ],
            "standByStores": [],
            "standByPartitions": [],
        }
        for query_id, wanted in site.database.catalog_state().queries.items()
    }
    now = now_ms()
    lags = {info.query_id: {"lag": info.lag} for info in site.database.queries()}
    host = {
        "hostAlive": True,
        "lastStatusUpdateMs": now,
        "activeStandbyPerQuery": per_query,
        "hostStoreLags": {"stateStoreLags": lags, "updateTimeMs": now},
    }
    return {"clusterStatus": {site.address: host}}


ROUTES = [
    Route("/ksql", ksql, methods=["POST"]),
    Route("/info", info, methods=["GET"]),
    Route("/healthcheck", healthcheck, methods=["GET"]),
    Route("/status", statuses, methods=["GET"]),
    Route("/status/{command_id:path}", status, methods=["GET"]),
    Route("/clusterStatus", cluster_status, methods=["GET"]),
]
