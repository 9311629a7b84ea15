"""POST the records of a batch."""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from potok.retry_policy import BRIEFLY_MS, GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.http.client import Answer, Client, Unanswered
from potok.sinks.sink_spec import Batch, Failures, Opening, Rows, SinkWriter

if TYPE_CHECKING:
    from potok.sinks.http.http import HttpTarget

IDEMPOTENCY_KEY = "idempotency-key"
_KEY = re.compile(rb"[\x21-\x7e]{1,1000}")

NOT_NOW = frozenset({408, 409, 425, 429})
"""Responses that a retry may change. A server sends 409 while it processes the same request."""

NOT_HERE = frozenset({401, 402, 403, 404, 405, 406, 407, 410, 415, 421, 426, 501, 505})
"""Responses about the URL or the sender, which affect every record."""


@dataclass(frozen=True, slots=True)
class Request:
    """Some records of a batch, by index; `key` is the idempotency key that a record has itself."""

    numbers: tuple[int, ...]
    key: str = ""

    @property
    def name(self) -> str:
        return str(self.numbers[0]) if len(self.numbers) == 1 else f"{self.numbers[0]}+{len(self.numbers)}"


class HttpWriter(SinkWriter):
    """Posts the records of a batch, those of one key in order.

    A request is retried if that may help; records that a server rejects become dead letters. With at_most_once
    nothing is sent twice: what was sent and not accepted becomes a dead letter, because it may have arrived.
    """

    def __init__(self, target: HttpTarget, opening: Opening) -> None:
        self._target, self._opening = target, opening
        self._once = opening.guarantee is Guarantee.AT_MOST_ONCE
        self._client = Client(target.url, dict(target.headers), target.timeout_ms, target.concurrency)
        self._threads = ThreadPoolExecutor(target.concurrency, thread_name_prefix="potok-http")

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        given_up = threading.Event()
        bodies = rows.values
        running = [
            self._threads.submit(self._post_all, batch, requests, bodies, given_up)
            for requests in self._by_thread(rows)
        ]
        failures: Failures = {}
        errors: list[BaseException] = []
        for future in running:
            error = future.exception()
            if error is None:
                failures |= future.result()
            else:
                errors.append(error)
        if errors:
            raise errors[0]
        return dict(sorted(failures.items()))

    def _by_thread(self, rows: Rows) -> list[list[Request]]:
        """Return the requests of each thread: a key has one thread, so that its records arrive in order."""
        threads: list[list[int]] = [[] for _ in range(self._target.concurrency)]
        for number, key in enumerate(rows.keys):
            threads[(number if key is None else zlib.crc32(key)) % len(threads)].append(number)
        size = self._target.batch
        own = _own_keys(rows) if size == 1 else {}
        return [
            [
                Request(tuple(numbers[start : start + size]), own.get(numbers[start], ""))
                for start in range(0, len(numbers), size)
            ]
            for numbers in threads
            if numbers
        ]

    def _post_all(
        self, batch: Batch, requests: Sequence[Request], bodies: list[bytes], given_up: threading.Event
    ) -> Failures:
        failures: Failures = {}
        try:
            for request in requests:
                if given_up.is_set():
                    break
                failures |= self._post(batch, request, bodies, given_up)
        except BaseException:
            given_up.set()
            raise
        return failures

    def _post(self, batch: Batch, request: Request, bodies: list[bytes], given_up: threading.Event) -> Failures:
        """Post one request until it has a final response."""
        refused = self._answered(batch, request, bodies, given_up)
        if refused is None:
            return {}
        if len(request.numbers) == 1 or self._once:
            return dict.fromkeys(request.numbers, refused)
        failures: Failures = {}
        for number in request.numbers:
            failures |= self._post(batch, Request((number,)), bodies, given_up)
        return failures

    def _answered(self, batch: Batch, request: Request, bodies: list[bytes], given_up: threading.Event) -> str | None:
        """Return why the server rejects a request; None if it accepts it."""
        body = bodies[request.numbers[0]]
        if self._target.batch > 1:
            body = b"[" + b",".join(bodies[number] for number in request.numbers) + b"]"
        key = self._key(batch, request, body)
        retry = Retry(self._target.give_up_after_ms or (GIVE_UP_MS if self._once else BRIEFLY_MS), given_up)
        while True:
            try:
                answer = self._client.post(body, {"Idempotency-Key": key})
            except Unanswered as error:
                if self._once and (error.sent or not retry.wait()):
                    return error.reason
                if not self._once and not retry.wait():
                    raise self._failed(batch, error.reason, passing=True) from error
                continue
            if answer.taken:
                return None
            if self._once or not self._passes(answer):
                return self._refused(batch, answer)
            if not retry.wait(answer.retry_after_s):
                raise self._failed(batch, str(answer), passing=True)

    def _passes(self, answer: Answer) -> bool:
        """Return whether a retry may succeed."""
        return answer.status in NOT_NOW or (answer.status >= 500 and answer.status not in NOT_HERE)

    def _refused(self, batch: Batch, answer: Answer) -> str:
        if not self._once and (answer.status in NOT_HERE or answer.status < 400):
            raise self._failed(batch, str(answer))
        return str(answer)

    def _key(self, batch: Batch, request: Request, body: bytes) -> str:
        """Return the idempotency key of a request of a batch.

        It includes the body, because a repeated batch may have other records if the program was changed.
        """
        if request.key:
            return request.key
        names = quote(self._opening.query), quote(self._opening.step, safe="")
        return "/".join((*names, str(batch.number), request.name, f"{zlib.crc32(body):08x}"))

    def _failed(self, batch: Batch, cause: str, *, passing: bool = False) -> DeliveryFailed:
        """Transient, unless `give_up_after` has already limited the retries."""
        passing = passing and self._target.give_up_after_ms is None
        step, label = self._opening.step, self._target.label
        return DeliveryFailed(step, label, batch.number, cause, lost=self._once, passing=passing)

    def close(self) -> None:
        self._threads.shutdown()
        self._client.close()


def _own_keys(rows: Rows) -> dict[int, str]:
    """Return the header `idempotency-key` of the records that have it, as the commands of a saga do."""
    if rows.headers is None:
        return {}
    found: dict[int, str] = {}
    for number, headers in enumerate(rows.headers.to_pylist()):
        for header in headers or ():
            key = header["value"] or b""
            if header["name"].lower() == IDEMPOTENCY_KEY and _KEY.fullmatch(key):
                found[number] = key.decode()
    return found
