"""Statements and running queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from starlette.types import Scope

from potok.errors import PotokError
from potok.server.access.audit import TARGET
from potok.server.access.guard import answer_of, caller_of
from potok.server.access.held_bytes import Holding
from potok.server.access.rights import allow, may_see_query
from potok.server.access.tokens import ADMIN, READ
from potok.server.access.work import properties_of
from potok.server.answers import AnswerSize
from potok.server.api.tables import answer
from potok.server.context import Site, json_body, object_of, require_query, site_of, text_of
from potok.server.errors import BadRequest, NotThere
from potok.server.ksql.json_rows import RowWriter
from potok.server.positions.headers import WAITS, WAITS_FOR, position_of_all, wait_as_asked, with_position
from potok.server.positions.statements import read_by
from potok.server.problems import NOT_THERE, problem_described, problem_response
from potok.server.run_statement import described, run_for
from potok.sql.syntax import ast
from potok.sql.types import type_name
from potok.statements.queries.query_tables import QueryTables
from potok.statements.queries.runner import QueryInfo
from potok.statements.results import Done, Result, Rows

router = APIRouter()

_SQL = {
    "type": "object",
    "required": ["sql"],
    "properties": {
        "sql": {"type": "string", "description": "One or more statements, each ending with `;`."},
        "properties": {"type": "object", "description": "Properties for these statements only, as in SET."},
        "variables": {"type": "object", "description": "Values of variables `${name}`."},
    },
}
_BODY: dict[str, Any] = {
    "requestBody": {"content": {"application/json": {"schema": _SQL}}},
    "parameters": WAITS_FOR,
}
_SO_FAR = {"type": "array", "items": {"type": "object"}, "description": "Results of the preceding statements."}
_FAILED: dict[int | str, dict[str, Any]] = {
    400: problem_described("An invalid statement or body.", results=_SO_FAR),
    404: problem_described("A statement that names an unknown query or topic.", results=_SO_FAR),
    409: problem_described("The catalog has changed concurrently: send the statement again.", results=_SO_FAR),
    **WAITS,
}


@router.post("/sql", tags=["statements"], summary="Execute statements", openapi_extra=_BODY, responses=_FAILED)
async def sql(request: Request) -> Response:
    """Return the results in the order of the statements. If a statement fails, those before it have taken effect, and
    the response is a problem with their results. Send push queries to `POST /query-stream`. `Potok-Position` is the
    position after the inserted rows; pull queries wait for that of `Potok-Wait-For`."""
    site, body = site_of(request), await json_body(request)
    text, variables = text_of(body, "sql", "ksql"), object_of(body, "variables")
    properties = properties_of(body.get("properties"))
    script = await site.work.script(text, variables)
    request.scope[TARGET] = described(script)
    allow(script, caller_of(request.scope), site.database, properties)
    _check_ends(script)
    await wait_as_asked(request, lambda: read_by(site.database, script, properties))
    holding = answer_of(request.scope)
    return await site.work.carry_out(
        script, lambda: _carry_out(site, script, properties, variables, holding, request.scope)
    )


def _check_ends(script: Sequence[ast.Parsed]) -> None:
    for parsed in script:
        statement = parsed.statement
        if isinstance(statement, ast.Print) or (isinstance(statement, ast.Query) and statement.query.emit is not None):
            raise BadRequest("a push query has no finite response", hint="POST it to /query-stream")


def _carry_out(
    site: Site,
    script: Sequence[ast.Parsed],
    properties: Mapping[str, str],
    variables: Mapping[str, Any],
    holding: Holding,
    scope: Scope,
) -> Response:
    """Encode the whole response, in a thread because it may be large."""
    session, results, written = site.work.session(variables), list[orjson.Fragment](), list[str]()
    size = AnswerSize(site.limits.answer_bytes, holding)
    for parsed in script:
        try:
            result = run_for(scope, site, session, parsed, properties)
            written.append(getattr(result, "position", ""))
            results.append(size.fragment(partial(_executed, parsed.text, result, size)))
        except PotokError as error:
            return with_position(problem_response(error, results=results), position_of_all(written))
    return with_position(answer({"results": results}), position_of_all(written))


def _executed(text: str, result: Result, size: AnswerSize) -> dict[str, Any]:
    return {"statement": text, **result_of(result, size)}


def result_of(result: Result, size: AnswerSize) -> dict[str, Any]:
    """Return a finite result as JSON data."""
    if isinstance(result, Done):
        return {"kind": "done", **asdict(result)}
    assert isinstance(result, Rows)
    writer = RowWriter(result.columns)
    return {
        "kind": result.kind,
        "columns": [{"name": c.name, "type": type_name(c.type), "key": c.is_key} for c in result.columns],
        "rows": orjson.Fragment(size.array(map(writer.array, result.rows))),
        "details": [
            [head, result_of(detail, size) if isinstance(detail, Rows) else detail] for head, detail in result.details
        ],
        "warnings": list(result.warnings),
    }


@router.get("/queries", tags=["queries"], summary="List the queries with their status")
async def queries(request: Request) -> Response:
    caller, site = caller_of(request.scope), site_of(request)
    caller.require_some(READ)
    found = await site.work.answer(site.database.queries)
    shown = [_description(info) for info in found if may_see_query(caller, site.database, info.query_id)]
    return answer({"queries": shown, "push": site.pushes.ids if caller.may(READ) else []})


@router.get("/queries/{query_id}", tags=["queries"], summary="One query", responses=NOT_THERE)
async def query(request: Request, query_id: str) -> Response:
    await require_query(request, query_id)
    return answer(_description(await _known(site_of(request), query_id)))


@router.post("/queries/{query_id}/{action}", tags=["queries"], summary="pause, resume or restart", responses=NOT_THERE)
async def steer(request: Request, query_id: str, action: str) -> Response:
    """Pause or resume a query between two batches. `restart` pauses and resumes it, and retries a query that failed."""
    if action not in ("pause", "resume", "restart"):
        raise NotThere(
            f'there is no action "{action}"', hint="POST .../pause, .../resume or .../restart, or DELETE the query"
        )
    if action != "restart":
        return await _steer(request, query_id, action.upper())
    await _steer(request, query_id, "PAUSE")
    return await _steer(request, query_id, "RESUME")


@router.delete(
    "/queries/{query_id}", tags=["queries"], summary="Terminate a query; its output is kept", responses=NOT_THERE
)
async def terminate(request: Request, query_id: str) -> Response:
    return await _steer(request, query_id, "TERMINATE")


async def _steer(request: Request, query_id: str, action: str) -> Response:
    await require_query(request, query_id, ADMIN)
    site = site_of(request)
    info = await _known(site, query_id)
    database = site.database
    if isinstance(database, QueryTables):
        if action not in ("PAUSE", "RESUME"):
            raise BadRequest("a program ends its query", hint="stop the process that runs it")
        message = await site.work.change(lambda: database.steer(info.query_id, action.lower()))
        return answer({"query": info.query_id, "message": message})
    (parsed,) = await site.work.script(f"{action} {info.query_id};")
    done = await site.work.change(lambda: site.work.run(site.work.session(), parsed, {}))
    assert isinstance(done, Done)
    return answer({"query": info.query_id, "message": done.message})


async def _known(site: Site, query_id: str) -> QueryInfo:
    found = {info.query_id: info for info in await site.work.answer(site.database.queries)}
    info = found.get(query_id) or found.get(query_id.upper())
    if info is None:
        raise NotThere(f'there is no query "{query_id}"', hint=f"known queries: {', '.join(found) or 'none'}")
    return info


def _description(info: QueryInfo) -> dict[str, Any]:
    return asdict(info)
