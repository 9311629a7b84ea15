"""Append records to topics, idempotently if requested."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Header, Request, Response

from potok.monitoring.trace_context import TRACEPARENT, trace_header
from potok.server.access.guard import caller_of
from potok.server.access.tokens import WRITE
from potok.server.api.idempotent import append_once
from potok.server.api.record_bodies import records_of
from potok.server.api.tables import answer
from potok.server.context import Site, site_of
from potok.server.errors import BadRequest
from potok.server.positions.headers import with_position
from potok.server.problems import BAD, NOT_THERE, problem_described

router = APIRouter(tags=["topics"])

_RECORD = {
    "type": "object",
    "properties": {
        "key": {"description": "Text as it is, anything else as JSON."},
        "key_base64": {"type": "string", "description": "The bytes of the key, instead of `key`."},
        "value": {"description": "Text as it is, anything else as JSON; null deletes the key of a compacted topic."},
        "value_base64": {"type": "string", "description": "The bytes of the value, instead of `value`."},
        "timestamp": {"type": "integer", "description": "Milliseconds since 1970; default: the current time."},
        "headers": {"type": "object", "description": "Text by name."},
        "partition": {"type": "integer", "description": "Default: chosen by the key."},
    },
}
_SCHEMA = {"anyOf": [_RECORD, {"type": "array", "items": _RECORD}]}
_BODY = {"requestBody": {"content": {"application/json": {"schema": _SCHEMA}}}}
USED_BEFORE: dict[int | str, dict[str, Any]] = {
    422: problem_described("An idempotency key that was used for other records.")
}


@router.post(
    "/topics/{name}/records",
    status_code=201,
    summary="Append one record or many",
    openapi_extra=_BODY,
    responses=BAD | NOT_THERE | USED_BEFORE,
)
async def append(
    request: Request,
    name: str,
    idempotency_key: str | None = Header(
        None, max_length=200, description="The same key appends once within a day, also after a restart."
    ),
) -> Response:
    """Append records; they become visible together and are durable when the response is sent. A read that sends the
    `Potok-Position` of the response as `Potok-Wait-For` includes them. A header `traceparent` becomes one of each
    record that has none."""
    caller_of(request.scope).require(WRITE, name)
    site, body = site_of(request), await request.body()
    broker = site.database.broker
    try:
        given: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(
            f"the body is not JSON: {error}", hint='send {"key": "k", "value": {...}} or a list'
        ) from error
    records = records_of(given, trace_header(request.headers.get(TRACEPARENT)))

    def work() -> dict[str, Any]:
        check_writable(site, name)
        return append_once(broker, name, records, idempotency_key, body)

    response = await site.work.answer(work)
    return with_position(answer(response, 200 if response.get("repeated") else 201), response.get("position"))


def check_writable(site: Site, topic: str) -> None:
    """Raise if a query writes the topic."""
    if site.aggregates.writes(topic):
        hint = "POST /commands/{aggregate}/{id}/{Command}"
        raise BadRequest(f'topic "{topic}" holds the results of commands', hint=hint)
    if topic.startswith("_") or topic.endswith("-dead-letters"):
        raise BadRequest(f'clients cannot write to topic "{topic}"', hint="choose another topic")
    for source in site.database.catalog.sources.values():
        if source.topic == topic and source.is_table and source.query:
            hint = "send records to the sources of that query"
            raise BadRequest(f'topic "{topic}" is written by query {source.query}', hint=hint)
