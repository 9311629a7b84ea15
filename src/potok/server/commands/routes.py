"""Send commands to aggregates, and wait for their results."""

from __future__ import annotations

import asyncio
import re
import uuid
from typing import Any
from urllib.parse import unquote

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from potok.patterns.aggregates.client import Found, Sent, append_command, find_result
from potok.patterns.aggregates.messages import ANY, EXISTS, NONE, command_record, results_topic
from potok.server.access.guard import caller_of
from potok.server.access.tokens import READ, WRITE
from potok.server.api.tables import answer
from potok.server.commands.answers import result_response, sent_response
from potok.server.commands.ids import sent_of, unknown
from potok.server.context import MOST_NESTED, Site, site_of
from potok.server.errors import BadRequest, KeyUsedBefore, WrongMethod
from potok.server.pages import pattern_of, raw_path
from potok.server.positions.headers import wait_of
from potok.server.problems import problem_response

DEFAULT_WAIT_S = 10.0

LONGEST_KEY = 200

_VERSION = re.compile(r'"([0-9]{1,15})"', re.ASCII)
_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?", re.ASCII)
_PATTERN = re.compile(pattern_of("/commands/{aggregate}/{id}/{command}"))


class CommandRoute(BaseRoute):
    """`POST /commands/{aggregate}/{id}/{command}`. The path is compared before it is decoded, so that an id may contain
    a slash as `%2F`."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or not scope["path"].startswith("/commands/"):
            return Match.NONE, {}
        found = _PATTERN.fullmatch(raw_path(scope))
        if found is None:
            return Match.NONE, {}
        return Match.FULL, {"path_params": {name: unquote(text) for name, text in found.groupdict().items()}}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            refused = problem_response(WrongMethod(request.method, request.url.path, ["POST"]))
            refused.headers["Allow"] = "POST"
            await refused(scope, receive, send)
            return
        await (await _send(request))(scope, receive, send)


async def _send(request: Request) -> Response:
    """Append the command, and answer with its result once it is committed."""
    site, parts = site_of(request), request.path_params
    aggregate, aggregate_id, command = parts["aggregate"], parts["id"], parts["command"]
    caller_of(request.scope).require(WRITE, aggregate)
    data = _data(await request.body())
    command_id = _command_id(request)
    record = command_record(aggregate_id, command, data, command_id=command_id, expected_version=_expected(request))
    seconds = _seconds(request)

    def append() -> Sent:
        return append_command(site.database.broker, aggregate, command_id, record)

    await site.work.answer(lambda: site.aggregates.command(aggregate, command))
    if seconds <= 0:
        return sent_response(await site.work.answer(append))
    async with site.results.expected(results_topic(aggregate), aggregate_id.encode(), command_id) as future:
        sent = await site.work.answer(append)
        found = await _in_time(future, seconds)
    if found is None:
        return sent_response(sent)
    if found.result.command != command:
        raise KeyUsedBefore(command_id)
    return result_response(sent, found)


async def _status(request: Request) -> Response:
    """Answer with the result of a sent command, or 202 while there is none."""
    caller = caller_of(request.scope)
    if not caller.may_some(WRITE):
        caller.require_some(READ)
    site, text = site_of(request), request.path_params["command_id"]
    sent = sent_of(text)
    if not caller.may(WRITE, sent.aggregate):
        caller.require(READ, sent.aggregate)
    await site.work.answer(lambda: _check(site, sent, text))
    seconds = _seconds(request, default_s=0)
    found = await site.work.answer(lambda: find_result(site.database.broker, sent))
    if found is None and seconds > 0:
        topic = results_topic(sent.aggregate)
        async with site.results.expected(topic, sent.aggregate_id.encode(), sent.command_id) as future:
            # Again, because it may have arrived before it was expected.
            found = await site.work.answer(lambda: find_result(site.database.broker, sent))
            found = found or await _in_time(future, seconds)
    return sent_response(sent) if found is None else result_response(sent, found, is_status=True)


def _check(site: Site, sent: Sent, text: str) -> None:
    site.aggregates.find(sent.aggregate)
    if sent.partition >= site.database.broker.partitions(results_topic(sent.aggregate)):
        raise unknown(text)


async def _in_time(future: asyncio.Future[Found | None], seconds: float) -> Found | None:
    try:
        async with asyncio.timeout(seconds):
            return await future
    except TimeoutError:
        return None


async def _listed(request: Request) -> Response:
    """List the aggregates with their commands."""
    caller, site = caller_of(request.scope), site_of(request)
    caller.require_some(READ)
    known = await site.work.answer(site.aggregates.all)
    found = [
        {
            "name": one.name,
            "events": one.events_topic,
            "commands": [{"name": command.name, "doc": command.doc} for command in one.commands.values()],
        }
        for _, one in sorted(known.items())
        if caller.may(READ, one.name)
    ]
    return answer({"aggregates": found})


def _data(body: bytes) -> dict[str, Any]:
    hint = 'send the fields of the command as a JSON object, for example {"order_id": "ord_1"}'
    if not body.strip():
        return {}
    if len(body) > MOST_NESTED and body.count(b"[") + body.count(b"{") > MOST_NESTED:
        raise BadRequest(f"the body has more than {MOST_NESTED:,} arrays and objects", hint=hint)
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}", hint=hint) from error
    if not isinstance(found, dict):
        raise BadRequest("the body is not a JSON object", hint=hint)
    return found


def _command_id(request: Request) -> str:
    """Return the idempotency key of a request, which identifies its command; a random one if there is none."""
    keys = request.headers.getlist("Idempotency-Key")
    if not keys:
        return uuid.uuid4().hex
    key = keys[0].strip()
    if len(keys) > 1 or not key or len(key) > LONGEST_KEY or not key.isprintable():
        hint = f"send one key of 1 to {LONGEST_KEY} printable characters, for example a UUID"
        raise BadRequest("the header Idempotency-Key is not one key", hint=hint)
    return key


def _expected(request: Request) -> str | int:
    """Return the version that a command expects."""
    match, none_match = request.headers.getlist("If-Match"), request.headers.getlist("If-None-Match")
    if not match and not none_match:
        return ANY
    if none_match and not match and [text.strip() for text in none_match] == ["*"]:
        return NONE
    given = match[0].strip() if len(match) == 1 and not none_match else ""
    version = _VERSION.fullmatch(given)
    if version is not None:
        return int(version[1])
    if given == "*":
        return EXISTS
    hint = 'write If-Match: "3" for a version, If-Match: * for an existing aggregate, If-None-Match: * for a new one'
    raise BadRequest("If-Match and If-None-Match do not say one version", hint=hint)


def _seconds(request: Request, default_s: float = DEFAULT_WAIT_S) -> float:
    """Return how long to wait for the result."""
    text = request.query_params.get("wait")
    if text is None:
        preferred = {part.strip().lower() for part in ",".join(request.headers.getlist("Prefer")).split(",")}
        return wait_of(request, 0 if "respond-async" in preferred else default_s)
    if not _SECONDS.fullmatch(text):
        raise BadRequest(f'wait cannot be "{text:.100}"', hint="write seconds: wait=5; or wait=0 not to wait")
    return min(float(text), site_of(request).limits.seconds)


ROUTES: list[BaseRoute] = [
    Route("/commands", _listed, methods=["GET"]),
    Route("/commands/{command_id}", _status, methods=["GET"]),
    CommandRoute(),
]
