"""The application that receives webhooks: verify, split, hand over, and respond once the records are durable."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from potok.clock import now_ms
from potok.monitoring.trace_context import TRACEPARENT, trace_header
from potok.records.log_record import LogRecord
from potok.sources.arrival import Arrival, Done
from potok.sources.bodies import BadBody, BodyTooLarge, decompressed, field_of, values_of
from potok.sources.counters import DROPPED_NEWEST, DROPPED_OLDEST, EXPIRED, MALFORMED, NOT_ACCEPTED, TOO_LARGE
from potok.sources.deduplication import AnotherBody, Deduplication, digest_of
from potok.sources.listener import ListenerContext
from potok.sources.webhooks.signatures import BadSignature, Headers, Verifier

Message = MutableMapping[str, Any]
RETRY_AFTER_S = 1
BODY_S = 30.0
"""Time limit for a client to send its body."""

_LOST = {NOT_ACCEPTED: 413, EXPIRED: 503, DROPPED_NEWEST: 503, DROPPED_OLDEST: 503}


class Refusal(Exception):
    """A response other than 202. The reason is None for records that were received and are counted as lost."""

    def __init__(self, status: int, detail: str, reason: str | None, *, retry: bool = False) -> None:
        super().__init__(detail)
        self.status, self.detail, self.reason, self.retry = status, detail, reason, retry


@dataclass(frozen=True, slots=True)
class Expected:
    """What a request looks like, and how long it may wait."""

    path: str
    body: str
    verifier: Verifier
    key: str | None
    id: str | None
    max_body: int
    timeout_s: float
    full_status: int
    """The response while the buffer is full."""


Known = Deduplication[asyncio.Future[str | None]]


class Receive:
    """An ASGI application for one webhook."""

    def __init__(self, expected: Expected, context: ListenerContext, known: Known | None) -> None:
        self._expected, self._context, self._known = expected, context, known
        self._results = _Results()

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        try:
            status, content, retry = 202, await self._accept(scope, receive), False
        except Refusal as refusal:
            if refusal.reason is not None:
                self._context.counters.refused(refusal.reason)
            status, retry = refusal.status, refusal.retry
            content = {"status": status, "detail": refusal.detail}
        except ConnectionAbortedError:
            self._context.counters.refused("disconnected")
            return
        kind = b"application/json" if status == 202 else b"application/problem+json"
        data = orjson.dumps(content)
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(data))]
        if retry:
            headers.append((b"retry-after", b"%d" % RETRY_AFTER_S))
        if status == 405:
            headers.append((b"allow", b"POST"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    async def _accept(self, scope: Message, receive: Callable[[], Awaitable[Message]]) -> dict[str, Any]:
        if scope["path"] != self._expected.path:
            raise Refusal(404, f"there is nothing at {scope['path']}", "not_found")
        if scope["method"] != "POST":
            raise Refusal(405, "a webhook is a POST request", "method")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        raw = await self._body(headers, receive)
        body = self._verified(headers, raw)
        return await self._land(headers, body)

    async def _body(self, headers: Headers, receive: Callable[[], Awaitable[Message]]) -> bytes:
        most = self._expected.max_body
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise self._too_large()
        parts: list[bytes] = []
        size, more = 0, True
        try:
            async with asyncio.timeout(BODY_S):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ConnectionAbortedError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise self._too_large()
                    more = message.get("more_body", False)
        except TimeoutError as error:
            raise Refusal(408, f"the body took longer than {BODY_S:g} seconds", "slow") from error
        return b"".join(parts)

    def _too_large(self) -> Refusal:
        return Refusal(413, f"the body is larger than {self._expected.max_body} bytes", TOO_LARGE)

    def _verified(self, headers: Headers, raw: bytes) -> bytes:
        """Verify the signature, which is that of the bytes as they were sent, and decompress the body."""
        try:
            self._expected.verifier.verify(headers, raw, now_ms() / 1000)
            return decompressed(headers.get("content-encoding", ""), raw, self._expected.max_body)
        except BadSignature as error:
            raise Refusal(401, str(error), "signature") from error
        except BodyTooLarge as error:
            raise self._too_large() from error
        except BadBody as error:
            raise Refusal(400, str(error), MALFORMED) from error

    async def _land(self, headers: Headers, body: bytes) -> dict[str, Any]:
        try:
            values = values_of(self._expected.body, body)
        except BadBody as error:
            raise Refusal(400, str(error), MALFORMED) from error
        if not values:
            return {"landed": 0}
        document = self._document(body)
        if self._known is None:
            result = self._results.future()
            self._offer(self._records(headers, document, values, ()), self._results.done(result))
            await self._wait(result)
            return {"landed": len(values)}
        return await self._land_once(self._known, headers, document, body, values)

    async def _land_once(
        self, known: Known, headers: Headers, document: object, body: bytes, values: list[bytes]
    ) -> dict[str, Any]:
        assert self._expected.id is not None
        identifier = _found(self._expected.id, headers, document)
        if not identifier:
            raise Refusal(400, f"there is no id: {self._expected.id}", "no_id")
        digest = digest_of(body)
        try:
            earlier = known.find(identifier, digest, now_ms())
        except AnotherBody as error:
            raise Refusal(409, f"the id {identifier[:100]!r} belongs to another body", "conflict") from error
        if earlier is True:
            self._context.counters.duplicates(1)
            return {"landed": 0, "duplicate": True}
        if isinstance(earlier, asyncio.Future):
            await self._wait(earlier)
            self._context.counters.duplicates(1)
            return {"landed": 0, "duplicate": True}
        result = self._results.future()
        marks = known.headers(identifier, digest)
        self._offer(self._records(headers, document, values, marks), self._results.done(result))
        known.begin(identifier, digest, result)
        result.add_done_callback(
            lambda ended: known.end(
                identifier, landed=not ended.cancelled() and ended.result() is None, now_ms=now_ms()
            )
        )
        await self._wait(result)
        return {"landed": len(values)}

    def _document(self, body: bytes) -> object:
        templates = (self._expected.key, self._expected.id)
        needed = self._expected.body == "json" and any(each and each.startswith("body:") for each in templates)
        return orjson.loads(body) if needed else None

    def _records(
        self, headers: Headers, document: object, values: list[bytes], marks: tuple[tuple[str, bytes], ...]
    ) -> list[LogRecord]:
        key = self._expected.key
        marks += trace_header(headers.get(TRACEPARENT))
        if key is None:
            return [LogRecord(None, value, headers=marks) for value in values]
        if self._expected.body in ("array", "ndjson") and key.startswith("body:"):
            keys = [_found(key, headers, orjson.loads(value)) for value in values]
        else:
            keys = [_found(key, headers, document)] * len(values)
        if None in keys:
            raise Refusal(400, f"there is no key: {key}", "no_key")
        return [LogRecord(k.encode(), v, headers=marks) for k, v in zip(keys, values, strict=True) if k is not None]

    def _offer(self, records: list[LogRecord], done: Done) -> None:
        if not self._context.buffer.offer(Arrival.of(records, done, whole=True)):
            raise Refusal(
                self._expected.full_status, "the buffer is full; repeat the request later", "full", retry=True
            )

    async def _wait(self, result: asyncio.Future[str | None]) -> None:
        await asyncio.wait((result,), timeout=self._expected.timeout_s)
        if not result.done():
            raise Refusal(503, "the log does not answer; repeat the request later", "timeout", retry=True)
        if (problem := result.result()) is not None:
            status = _LOST.get(problem, 503)
            raise Refusal(status, f"the records are lost: {problem}", None, retry=status == 503)


class _Results:
    """Carries results from the thread that appends to the event loop, all that are there with one wake-up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: list[tuple[asyncio.Future[str | None], str | None]] = []

    def future(self) -> asyncio.Future[str | None]:
        return asyncio.get_running_loop().create_future()

    def done(self, future: asyncio.Future[str | None]) -> Done:
        loop = future.get_loop()

        def finish(problem: str | None) -> None:
            with self._lock:
                self._ready.append((future, problem))
                first = len(self._ready) == 1
            if first:
                # The loop is closed if the listener stopped while requests were under way.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._deliver)

        return finish

    def _deliver(self) -> None:
        with self._lock:
            ready, self._ready = self._ready, []
        for future, problem in ready:
            if not future.done():
                future.set_result(problem)


def _found(template: str, headers: Headers, document: object) -> str | None:
    kind, _, name = template.partition(":")
    return headers.get(name.lower()) if kind == "header" else field_of(document, name.split("."))
