"""Instances of sagas: list, show, follow and control them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Header, Query, Request, Response

from potok.server.access.guard import answer_of, caller_of
from potok.server.access.tokens import READ, WRITE
from potok.server.answers import AnswerSize
from potok.server.api.changes import EVENT_ID, EVENTS, FROM, SAME_ID, AnyFeed, sse
from potok.server.api.snapshot_feed import SagaFeed
from potok.server.api.tables import answer
from potok.server.context import Site, site_of
from potok.server.errors import BadRequest
from potok.server.ksql.json_rows import dump
from potok.server.positions.headers import WAITS, WAITS_FOR, wait_as_asked
from potok.server.problems import BAD, NOT_THERE, problem_described
from potok.snapshots.patterns.saga_instances import SagaInstances, merged, saga_named

router = APIRouter(tags=["sagas"])

_STATE = Query(None, description="Only those in this state: running, aborting, stuck, completed or aborted.")
_LIMIT = Query(100, ge=1, description="Maximum number of instances.")
_WAITS_FOR = {"parameters": WAITS_FOR}
_REFUSED: dict[int | str, dict[str, Any]] = {
    409: problem_described("The state of the instance does not allow the action.")
}


@router.get("/sagas", summary="List instances", responses=BAD | NOT_THERE | WAITS, openapi_extra=_WAITS_FOR)
async def instances(
    request: Request, state: str | None = _STATE, saga: str | None = None, limit: int = _LIMIT
) -> Response:
    """List the instances of all sagas, or of one; those that wait for operators first."""
    caller, site = caller_of(request.scope), site_of(request)
    caller.require_some(READ)
    if saga is not None:
        caller.require(READ, saga)
    _check_limit(site, limit)
    await _wait(request, site, saga)

    def work() -> Response:
        known = [one for one in site.sagas.known() if caller.may(READ, one.name)]
        chosen = known if saga is None else [saga_named(known, saga)]
        pages = [SagaInstances(site.database.broker, one).listed(state, limit) for one in chosen]
        rendered = map(dump, merged(pages, limit))
        listed = AnswerSize(site.limits.answer_bytes, answer_of(request.scope)).array(rendered)
        names = dump([{"name": one.name, "query": one.query, "by": one.by, "steps": one.summary} for one in known])
        return Response(b'{"sagas":' + names + b',"instances":' + listed + b"}", media_type="application/json")

    return await site.work.answer(work)


@router.get(
    "/sagas/{name}",
    summary="List the instances of a saga",
    responses=BAD | NOT_THERE | WAITS,
    openapi_extra=_WAITS_FOR,
)
async def instances_of(
    request: Request,
    name: str,
    state: str | None = _STATE,
    limit: int = _LIMIT,
    after: str | None = Query(None, description="Only keys behind this one, for a state: the `next` of a page."),
) -> Response:
    caller_of(request.scope).require(READ, name)
    site = site_of(request)
    _check_limit(site, limit)
    await _wait(request, site, name)

    def work() -> Response:
        found = _opened(site, name).listed(state, limit + 1, after)
        more = len(found) > limit and state is not None
        following = dump(str(found[limit - 1]["id"]) if more else None)
        listed = AnswerSize(site.limits.answer_bytes, answer_of(request.scope)).array(map(dump, found[:limit]))
        return Response(b'{"instances":' + listed + b',"next":' + following + b"}", media_type="application/json")

    return await site.work.answer(work)


@router.get("/sagas/{name}/changes", summary="Follow the instances of a saga", responses=EVENTS, response_model=None)
async def changes(
    request: Request,
    name: str,
    last_event_id: str | None = EVENT_ID,
    last: str | None = Query(None, alias="last_event_id", description=SAME_ID),
    start: str = FROM,
) -> Response:
    """Send an instance as a list shows it whenever it has changed; `state` is null when it was removed."""
    caller_of(request.scope).require(READ, name)
    site = site_of(request)

    def work() -> AnyFeed:
        return SagaFeed(_opened(site, name), last_event_id or last, start)

    return await sse(request, work)


@router.get(
    "/sagas/{name}/{key:path}",
    summary="Show an instance",
    responses=NOT_THERE | WAITS,
    openapi_extra=_WAITS_FOR,
)
async def instance(request: Request, name: str, key: str) -> Response:
    """Show state, steps, data, timers and the history with the ids of its events."""
    caller_of(request.scope).require(READ, name)
    site = site_of(request)
    await _wait(request, site, name)
    return await site.work.answer(lambda: answer(_opened(site, name).get(key)))


@router.post(
    "/sagas/{name}/{key:path}/{action}",
    status_code=202,
    summary="Retry, skip or abort an instance",
    responses=BAD | NOT_THERE | _REFUSED,
)
async def act(
    request: Request,
    name: str,
    key: str,
    action: str,
    idempotency_key: str | None = Header(None, max_length=200, description="The same key acts once."),
) -> Response:
    """Make an instance `retry` or `skip` the step at which it is stuck, or `abort`. Effective with the next batch."""
    caller_of(request.scope).require(WRITE, name)
    site = site_of(request)

    def work() -> Response:
        before = _opened(site, name).control(key, action, idempotency_key)
        return answer({"saga": name, "id": before["id"], "action": action, "state": before["state"]}, 202)

    return await site.work.answer(work)


async def _wait(request: Request, site: Site, name: str | None) -> None:
    """Wait for the queries of all sagas or of one."""

    def queries() -> list[str]:
        known = site.sagas.known()
        return [one.query for one in (known if name is None else [saga_named(known, name)])]

    await wait_as_asked(request, queries)


def _opened(site: Site, name: str) -> SagaInstances:
    return SagaInstances(site.database.broker, saga_named(site.sagas.known(), name))


def _check_limit(site: Site, limit: int) -> None:
    if limit > site.limits.rows:
        raise BadRequest(f"limit exceeds the maximum of {site.limits.rows:,}", hint="request the rest with after")
