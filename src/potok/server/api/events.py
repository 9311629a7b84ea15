"""Append events to topics, as the HTTP binding of CloudEvents says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Header, Query, Request, Response

from potok.events.envelope import BadEnvelope
from potok.events.http_binding import BATCH, ReceivedEvent, UnknownMediaType, read_request
from potok.events.kafka_binding import STRUCTURED
from potok.log.errors import TopicNotFound
from potok.records.log_record import NO_TIMESTAMP, LogRecord
from potok.server.access.guard import caller_of
from potok.server.access.tokens import WRITE
from potok.server.api.idempotent import append_once
from potok.server.api.record_bodies import AddressedRecord
from potok.server.api.records import USED_BEFORE, check_writable
from potok.server.api.tables import answer
from potok.server.context import site_of
from potok.server.errors import BadRequest, UnknownContent
from potok.server.positions.headers import with_position
from potok.server.problems import BAD, NOT_THERE, problem_described

router = APIRouter(tags=["topics"])

_EVENT = {
    "type": "object",
    "required": ["specversion", "id", "source", "type"],
    "properties": {
        "specversion": {"const": "1.0"},
        "id": {"type": "string"},
        "source": {"type": "string", "format": "uri-reference"},
        "type": {"type": "string"},
        "time": {"type": "string", "format": "date-time"},
        "datacontenttype": {"type": "string"},
        "data": {},
        "data_base64": {"type": "string"},
    },
}
_CONTENT = {
    STRUCTURED: {"schema": _EVENT},
    BATCH: {"schema": {"type": "array", "items": _EVENT}},
    "*/*": {"schema": {"description": "The data of an event whose attributes are headers: `ce-id`, `ce-type`, ..."}},
}
_UNKNOWN: dict[int | str, dict[str, Any]] = {415: problem_described("Neither an event in JSON nor in binary mode.")}


@router.post(
    "/topics/{name}/events",
    status_code=201,
    summary="Append one CloudEvent or a batch",
    openapi_extra={"requestBody": {"content": _CONTENT}},
    responses=BAD | NOT_THERE | USED_BEFORE | _UNKNOWN,
)
async def append(
    request: Request,
    name: str,
    key: str | None = Query(None, description="The key of the records."),
    key_from: str | None = Query(
        None, description="The attribute whose text is the key: `partitionkey`, `subject`, ...; null without it."
    ),
    idempotency_key: str | None = Header(
        None, max_length=200, description="The same key appends once within a day, also after a restart."
    ),
) -> Response:
    """Append events in binary, structured or batched mode. They become visible together and are durable when the
    response is sent. An event keeps its mode; the events of a batch are records in structured mode.
    """
    caller_of(request.scope).require(WRITE, name)
    site, body = site_of(request), await request.body()
    broker = site.database.broker
    events = _read(request, body)
    if key is not None and key_from is not None:
        raise BadRequest("key and key_from exclude each other", hint="write one of them")
    records = [AddressedRecord(_record(event, key, key_from), None) for event in events]

    def work() -> dict[str, Any]:
        check_writable(site, name)
        if not records and broker.has_topic(name):
            return {"topic": name, "records": 0, "partitions": {}}
        if not records:
            raise TopicNotFound(name)
        return append_once(broker, name, records, idempotency_key, _content(records))

    response = await site.work.answer(work)
    status = 200 if response.get("repeated") or not records else 201
    return with_position(answer(response, status), response.get("position"))


def _read(request: Request, body: bytes) -> list[ReceivedEvent]:
    try:
        return read_request(request.headers.raw, body)
    except UnknownMediaType as error:
        hint = f'send "ce-" headers, {STRUCTURED} or {BATCH}, in UTF-8'
        raise UnknownContent(str(error), hint=hint) from error
    except BadEnvelope as error:
        hint = "send an event of CloudEvents 1.0; docs/events.md has examples"
        raise BadRequest(str(error), hint=hint) from error


def _record(event: ReceivedEvent, key: str | None, key_from: str | None) -> LogRecord:
    found = key if key_from is None else event.envelope.attributes.get(key_from)
    return LogRecord(None if found is None else str(found).encode(), event.value, NO_TIMESTAMP, event.headers)


def _content(records: Sequence[AddressedRecord]) -> bytes:
    """Return what makes the records of a request the same as those of another."""
    return repr([(item.record.key, item.record.value, item.record.headers) for item in records]).encode()
