"""Dead letters: group them, show them, replay and purge them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import APIRouter, Query, Request, Response

from potok.dead_letters.dead_letters import DeadLetters
from potok.dead_letters.plain import dead_letter_as_object, replay_as_object
from potok.dead_letters.selection import AnyPosition, Selection
from potok.operators.core.dead_letters import Reason
from potok.server.access.guard import answer_of, caller_of
from potok.server.access.rights import inputs_of
from potok.server.access.tokens import READ, WRITE
from potok.server.answers import AnswerSize
from potok.server.api.tables import answer
from potok.server.context import Site, require_query, site_of
from potok.server.errors import BadRequest
from potok.server.instants import instant_ms
from potok.server.ksql.json_rows import dump
from potok.server.problems import BAD, NOT_THERE
from potok.snapshots.tables import query_named

router = APIRouter(tags=["dead letters"])

GROUPED = 2_000
"""How many of the latest dead letters of a query are grouped by step and reason."""

_SINCE = Query(None, description="Only those set aside since then: milliseconds since 1970, or an ISO time.")
_SELECTION = {
    "type": "object",
    "properties": {
        "positions": {
            "type": "array",
            "items": {"type": "string"},
            "description": "`partition:offset`, as lists show.",
        },
        "step": {"type": "string"},
        "reason": {"type": "string", "enum": list(Reason)},
        "topic": {"type": "string", "description": "Only those of records from this topic."},
        "since": {"type": ["integer", "string"]},
        "until": {"type": ["integer", "string"]},
        "dry_run": {"type": "boolean", "description": "Only count."},
    },
}
_BODY = {"requestBody": {"content": {"application/json": {"schema": _SELECTION}}}}


@router.get("/dead-letters", summary="Open dead letters by query, step and reason")
async def groups(request: Request) -> Response:
    """Return, for each query, how many dead letters are open, and the latest of them grouped by step and reason."""
    caller, site = caller_of(request.scope), site_of(request)
    caller.require_some(READ)

    def work() -> Response:
        found, counts = [], []
        for query in site.figures.names():
            if not caller.may(READ) and not caller.may(READ, *inputs_of(site.database, query)):
                continue
            box = DeadLetters(site.database.broker, query)
            count = box.count()
            if count:
                counts.append({"query": query, "open": count, "exact": count <= GROUPED})
                found += _grouped(box)
        found.sort(key=lambda group: -group["latest_at_ms"])
        return answer({"queries": counts, "groups": found})

    return await site.work.answer(work)


@router.get("/queries/{query_id}/dead-letters", summary="The dead letters of a query", responses=BAD | NOT_THERE)
async def dead_letters(
    request: Request,
    query_id: str,
    step: str | None = None,
    reason: str | None = Query(None, description="decode, timestamp, error, late, no key, encode or refused."),
    topic: str | None = Query(None, description="Only those of records from this topic."),
    since: str | None = _SINCE,
    until: str | None = None,
    position: str | None = Query(None, description="Only the one at `partition:offset`."),
    replayed: bool = Query(False, description="Include those that were replayed."),
    limit: int = Query(100, ge=1, le=2_000, description="Maximum number; the latest are returned."),
) -> Response:
    """Return the latest dead letters, the newest last: the bytes and headers of the record, its position, the step, the
    reason and the error."""
    await require_query(request, query_id, with_inputs=True)
    site = site_of(request)
    positions = None if position is None else [position]
    given = {"step": step, "reason": reason, "topic": topic, "since": since, "until": until, "positions": positions}

    def work() -> Response:
        box = _box(site, query_id)
        found = box.latest(limit, _selection(given), replayed=replayed)
        rows = (
            dump(dead_letter_as_object(box.query, one, fate)) for one, fate in zip(found, box.fates(found), strict=True)
        )
        listed = AnswerSize(site.limits.answer_bytes, answer_of(request.scope)).array(rows)
        count = dump(box.count())
        return Response(b'{"dead_letters":' + listed + b',"open":' + count + b"}", media_type="application/json")

    return await site.work.answer(work)


@router.post(
    "/queries/{query_id}/dead-letters/replay",
    summary="Append the records of dead letters to their topics again",
    openapi_extra=_BODY,
    responses=BAD | NOT_THERE,
)
async def replay(request: Request, query_id: str) -> Response:
    """Replay the selected open dead letters; without criteria, all. Each record goes to its original partition; its
    dead letters are resolved. If it fails again, it becomes a new dead letter."""
    await require_query(request, query_id, WRITE, with_inputs=True)
    site, given = site_of(request), _object(await request.body())
    dry_run = bool(given.pop("dry_run", False))

    def work() -> Response:
        box = _box(site, query_id)
        done = box.replay(_selection(given), dry_run=dry_run)
        return answer(replay_as_object(box.query, done, done=not dry_run))

    return await site.work.change(work)


@router.post(
    "/queries/{query_id}/dead-letters/purge",
    summary="Hide dead letters permanently",
    openapi_extra=_BODY,
    responses=BAD | NOT_THERE,
)
async def purge(request: Request, query_id: str) -> Response:
    """Hide the selected open dead letters, and remove them from the log where possible."""
    await require_query(request, query_id, WRITE, with_inputs=True)
    site, given = site_of(request), _object(await request.body())
    dry_run = bool(given.pop("dry_run", False))

    def work() -> Response:
        box = _box(site, query_id)
        done = box.purge(_selection(given), dry_run=dry_run)
        return answer(
            {"query": box.query, "done": not dry_run, "dead_letters": done.dead_letters, "removed": done.removed}
        )

    return await site.work.change(work)


def _grouped(box: DeadLetters) -> list[dict[str, Any]]:
    latest = box.latest(GROUPED)
    counts = Counter((one.step, one.reason, one.topic) for one in latest)
    newest = {(one.step, one.reason, one.topic): one for one in latest}
    return [
        {
            "query": box.query,
            "step": step,
            "reason": reason,
            "topic": topic,
            "count": counts[step, reason, topic],
            "latest_at_ms": one.set_aside_at_ms,
            "error": one.error,
        }
        for (step, reason, topic), one in newest.items()
    ]


def _box(site: Site, query_id: str) -> DeadLetters:
    return DeadLetters(site.database.broker, query_named(site.figures.names(), query_id))


def _selection(given: Mapping[str, Any]) -> Selection:
    reason = given.get("reason")
    if reason is not None and reason not in list(Reason):
        raise BadRequest(f'there is no reason "{reason}"', hint=f"use one of: {', '.join(Reason)}")
    positions = given.get("positions")
    if positions is not None and not isinstance(positions, list):
        raise BadRequest("positions is not a list", hint='write ["0:12"]')
    if positions is not None and not positions:
        raise BadRequest("positions is empty", hint="leave it out to select all")
    texts = {name: given.get(name) for name in ("step", "topic")}
    return Selection(
        texts["step"],
        reason,
        texts["topic"],
        instant_ms(_text(given.get("since"))),
        instant_ms(_text(given.get("until"))),
        frozenset(map(_position, positions or ())),
    )


def _position(text: Any) -> AnyPosition:
    partition, colon, offset = str(text).rpartition(":")
    if not offset.isdecimal() or (colon and not partition.isdecimal()) or len(offset) > 18:
        raise BadRequest(f'"{text}" is not the position of a dead letter', hint='write "partition:offset"')
    return (int(partition) if colon else None), int(offset)


def _text(given: Any) -> str | None:
    return None if given is None else str(given)


def _object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; an empty one selects everything. An unknown name would select too much."""
    if not body.strip():
        return {}
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}", hint='send, for example, {"reason": "decode"}') from error
    if not isinstance(found, dict):
        raise BadRequest("the body is not a JSON object", hint='send, for example, {"reason": "decode"}')
    odd = sorted(found.keys() - _SELECTION["properties"].keys())  # type: ignore[attr-defined]
    if odd:
        raise BadRequest(f'there is no criterion "{odd[0]}"', hint=f"use: {', '.join(_SELECTION['properties'])}")
    return found
