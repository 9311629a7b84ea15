"""Rows of tables by key, range and window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import APIRouter, Query, Request, Response
from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import Route

from potok.server.access.guard import answer_of, caller_of
from potok.server.access.tokens import READ
from potok.server.answers import AnswerSize
from potok.server.context import Site, require_source, site_of
from potok.server.errors import BadRequest
from potok.server.instants import instant_ms
from potok.server.ksql.json_rows import dump
from potok.server.positions.headers import WAITS, WAITS_FOR, wait_as_asked, waits_for
from potok.server.problems import BAD, NOT_THERE
from potok.server.tables.table_reads import EVERY, Keys, Windows, no_row, source_named

router = APIRouter(tags=["tables"])

_INSTANT = "Milliseconds since 1970, or an ISO time."
_START = f"Windows that begin at this instant or later. {_INSTANT}"
_END = f"Windows that begin before this instant. {_INSTANT}"


def _parameter(name: str, where: str, description: str) -> dict[str, Any]:
    required = {"required": True} if where == "path" else {}
    return {"name": name, "in": where, "description": description, "schema": {"type": "string"}, **required}


@router.get("/tables", summary="List the tables")
async def tables(request: Request) -> Response:
    """`readable` marks tables whose rows a query materializes: CREATE TABLE ... AS SELECT and CREATE SOURCE TABLE. The
    others only declare a topic."""
    caller = caller_of(request.scope)
    caller.require_some(READ)
    sources = site_of(request).database.catalog.sources.values()
    found = [
        {
            "name": source.name,
            "key": [column.name for column in source.keys],
            "columns": [column.name for column in source.columns],
            "windowed": source.window is not None,
            "readable": bool(source.table_of),
        }
        for source in sorted(sources, key=lambda source: source.name)
        if source.is_table and caller.may(READ, source.name)
    ]
    return answer({"tables": found})


@router.get(
    "/tables/{name}",
    summary="Rows of a table, in the order of their keys",
    responses=BAD | NOT_THERE | WAITS,
    openapi_extra={"parameters": WAITS_FOR},
)
async def rows(
    request: Request,
    name: str,
    low: str | None = Query(None, alias="from", description="The first key."),
    high: str | None = Query(None, alias="to", description="The end key (exclusive)."),
    prefix: str | None = Query(None, description="Prefix of the keys."),
    limit: int | None = Query(None, ge=1, description="Maximum number of rows."),
    at: str | None = Query(None, description=f"Windows that hold this instant. {_INSTANT}"),
    window_from: str | None = Query(None, description=_START),
    window_to: str | None = Query(None, description=_END),
) -> Response:
    site = site_of(request)
    require_source(request, name)
    if limit is not None and limit > site.limits.rows:
        raise BadRequest(f"limit exceeds the maximum of {site.limits.rows:,}", hint="request the rest with from")
    await _wait(request, site, name)
    keys, windows = Keys(low, high, prefix), Windows(instant_ms(at), instant_ms(window_from), instant_ms(window_to))
    size = _size(request, site)
    return await site.work.answer(lambda: _listed(size, site.reads.in_range(name, keys, windows, limit)))


@router.get(
    "/tables/{name}/{key:path}",
    summary="The row of a key, or those of its windows",
    responses=BAD | NOT_THERE | WAITS,
    openapi_extra={
        "parameters": [
            _parameter("name", "path", "The table."),
            _parameter("key", "path", "The key; for several key columns, a JSON array in their order."),
            _parameter("at", "query", f"The windows that hold this instant. {_INSTANT}"),
            _parameter("from", "query", _START),
            _parameter("to", "query", _END),
            *WAITS_FOR,
        ]
    },
)
async def row(request: Request) -> Response:
    site = site_of(request)
    name, key = request.path_params["name"], request.path_params["key"]
    require_source(request, name)
    await _wait(request, site, name)
    asked = request.query_params if request.scope["query_string"] else {}
    windows = (
        Windows(instant_ms(asked.get("at")), instant_ms(asked.get("from")), instant_ms(asked.get("to")))
        if asked
        else EVERY
    )
    size = _size(request, site)
    if site.reads.local_table(name) is not None:
        return _by_key(site, name, key, windows, size)
    return await site.work.answer(lambda: _by_key(site, name, key, windows, size))


async def _wait(request: Request, site: Site, name: str) -> None:
    if waits_for(request):
        await wait_as_asked(request, [source_named(site.database.catalog, name, is_table=True).table_of])


def _by_key(site: Site, name: str, key: str, windows: Windows, size: AnswerSize) -> Response:
    found = site.reads.by_key(name, key, windows)
    source = source_named(site.database.catalog, name, is_table=True)
    if source.window is not None:
        return _listed(size, found)
    if not found:
        raise no_row(source)
    return answer(found[0])


def _size(request: Request, site: Site) -> AnswerSize:
    return AnswerSize(site.limits.answer_bytes, answer_of(request.scope))


def _listed(size: AnswerSize, rows: Iterable[Mapping[str, Any]]) -> Response:
    listed = size.array(map(dump, rows))
    return Response(b'{"rows":' + listed + b"}", media_type="application/json")


class KeyConvertor(Convertor[str]):
    """Key in a path: anything but the name of the change feed."""

    regex = "(?!changes$).*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("row_key", KeyConvertor())

QUICK = Route("/tables/{name}/{key:row_key}", row, methods=["GET"])
"""The same as the last route above, placed before all others, because finding a route among many takes long."""


def answer(content: Any, status: int = 200) -> Response:
    return Response(dump(content), status, media_type="application/json")
