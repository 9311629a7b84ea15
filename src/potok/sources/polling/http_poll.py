"""Poll an HTTP endpoint, at intervals or at the times of a cron expression."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

import orjson

from potok.duration import Duration, to_seconds
from potok.errors import PotokError, TopologyError
from potok.faust.services.service import wait_for_cron
from potok.records.log_record import LogRecord
from potok.redact import redact
from potok.retry_policy import MOST_S, Retry
from potok.sources.bodies import BODIES, BadBody, BodyTooLarge, elements_of, field_of, values_of
from potok.sources.counters import TOO_LARGE
from potok.sources.deduplication import Deduplication
from potok.sources.listener import Listener, ListenerContext, ListenerSpec, option
from potok.sources.messages.intake import Intake, Message
from potok.sources.messages.parts import check_part
from potok.sources.polling.fetch import Fetch, Response, Unavailable

_FULL_S = 0.01

_logger = logging.getLogger("potok.sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpPoll(ListenerSpec):
    """Records of an HTTP endpoint that is polled. A response that has not changed (ETag, Last-Modified) is not read
    again, even after a restart. With `id`, a record that was in an earlier response is not appended again. When the
    buffer is full, the next request waits.
    """

    kind: ClassVar[str] = "http"

    url: str = option("http:// or https://.", repr=False)
    every: Duration = option("How long to wait between two requests.", default="1 minute")
    cron: str | None = option("When to poll instead, in UTC, as in cron: `*/5 * * * *`.", default=None)
    body: Literal["json", "array", "ndjson", "raw"] = option(
        "`json`: one record; `array`: one record per element; `ndjson`: one record per line; `raw`: any bytes.",
        default="array",
    )
    items: str | None = option("`array`: the field with the elements, such as `data.items`.", default=None)
    key: str | None = option("What becomes the key of a record: `body:FIELD.FIELD` of its element.", default=None)
    id: str | None = option("What identifies a record, in the same form.", default=None)
    remember_ids: Duration = option("How long ids are remembered.", default="1 day")
    max_ids: int = option("Maximum number of remembered ids.", default=1_000_000)
    headers: tuple[str, ...] = option(
        "Headers of the request, as `Name: value`; the value may be `env:NAME` or `file:PATH`.", default=(), repr=False
    )
    max_body: int = option("Maximum size of a response in bytes, after decompression.", default=16 << 20)
    timeout: Duration = option("How long to wait for a response.", default="30 s")

    def check(self) -> None:
        ListenerSpec.check(self)
        found = urlsplit(self.url)
        if found.scheme not in ("http", "https") or not found.hostname:
            raise TopologyError("the url is not one of HTTP", hint='write url = "https://example.com/orders"')
        for name in ("every", "timeout"):
            if to_seconds(getattr(self, name)) <= 0:
                raise TopologyError(f"{name} must be longer than 0", hint=f'write {name} = "30 s"')
        if self.cron is not None:
            wait_for_cron(self.cron)
        if self.body not in BODIES:
            raise TopologyError(f'there is no body "{self.body}"', hint=f"use one of {', '.join(BODIES)}")
        if self.items is not None and self.body != "array":
            raise TopologyError("items needs an array", hint='write body = "array"')
        for name in ("key", "id"):
            check_part(name, getattr(self, name), (), headers=False)
            if getattr(self, name) is not None and self.body == "raw":
                raise TopologyError(f'a body that is "raw" has no fields for {name}', hint='write body = "json"')
        wrong = [each.partition(":")[0] for each in self.headers if ":" not in each]
        if wrong:
            raise TopologyError(f'the header "{wrong[0]}" has no value', hint='write headers = ["Name: value"]')
        self.overload.allow(("block",), "an endpoint is polled")

    def open(self, context: ListenerContext) -> Listener:
        return HttpPollListener(self, context)


class HttpPollListener(Listener):
    """A thread that asks, hands over, and remembers which answer has landed."""

    def __init__(self, spec: HttpPoll, context: ListenerContext) -> None:
        self._spec, self._context = spec, context
        self._key = f"gateway/{spec.name}/http"
        self._intake = Intake(context, Deduplication.of(spec, context.broker, "message"))
        stored = context.broker.get_metadata(self._key)
        self._validators: dict[str, str] = {} if stored is None else orjson.loads(stored)
        self._fetch = Fetch(spec.url, spec.headers, spec.max_body, to_seconds(spec.timeout))
        self._until_cron = None if spec.cron is None else wait_for_cron(spec.cron)
        self._problem: str | None = None
        self._requests = 0
        self._landed = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"potok-http-{spec.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._landed.set()
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        self._fetch.close()

    @property
    def problem(self) -> str | None:
        return self._problem

    def state(self) -> dict[str, Any]:
        return {"requests": self._requests}

    def _run(self) -> None:
        retry = self._retry()
        self._wait_for_the_next(first=True)
        while not self._stopping.is_set():
            self._requests += 1
            try:
                response = self._fetch(self._validators)
                self._problem = None
                retry = self._retry()
                if response is not None:
                    self._land(response)
            except BodyTooLarge:
                self._report(f"the response is larger than {self._spec.max_body} bytes")
                self._context.counters.refused(TOO_LARGE)
            except Unavailable as error:
                self._report(str(error))
                if retry.wait(error.retry_after_s):
                    continue
            self._wait_for_the_next()

    def _retry(self) -> Retry:
        return Retry(0, self._stopping, most_s=max(MOST_S, to_seconds(self._spec.every)))

    def _wait_for_the_next(self, *, first: bool = False) -> None:
        if self._until_cron is not None:
            self._stopping.wait(self._until_cron())
        elif not first:
            self._stopping.wait(to_seconds(self._spec.every))

    def _report(self, problem: str) -> None:
        text = redact(problem)
        if self._problem != text:
            _logger.warning('listener "%s": %s', self._spec.name, text)
        self._problem = text

    def _land(self, response: Response) -> None:
        """Hand an answer over and wait until it is durable: then it need not be read again."""
        try:
            messages = [self._message(value) for value in self._values(response.body)]
        except BadBody as error:
            self._report(f"the response cannot become records: {error}")
            self._context.malformed([response.body], str(error))
            self._remember(response.validators)
            return
        self._landed.clear()
        problems: list[str] = []

        def done(problem: str | None) -> None:
            if problem is not None:
                problems.append(problem)
            self._landed.set()

        while not self._intake.offer(messages, done):
            if self._stopping.wait(_FULL_S):
                return
        self._landed.wait()
        if not self._stopping.is_set() and not problems:
            self._remember(response.validators)

    def _values(self, body: bytes) -> list[bytes]:
        if self._spec.items is None:
            return values_of(self._spec.body, body)
        try:
            found: object = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise BadBody(f"the body is not JSON: {error}") from error
        for name in self._spec.items.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        if not isinstance(found, list):
            raise BadBody(f"{self._spec.items} is not an array")
        return elements_of(found)

    def _message(self, value: bytes) -> Message:
        if self._spec.key is None and self._spec.id is None:
            return Message(LogRecord(None, value))
        document = orjson.loads(value)
        key, identifier = (
            None if name is None else field_of(document, name.removeprefix("body:").split("."))
            for name in (self._spec.key, self._spec.id)
        )
        return Message(LogRecord(None if key is None else key.encode(), value), identifier)

    def _remember(self, validators: dict[str, str]) -> None:
        self._validators = validators
        try:
            self._context.broker.set_metadata({self._key: orjson.dumps(validators)})
        except PotokError as error:
            # Until the next answer, a restart reads this one again.
            _logger.warning('listener "%s": the ETag was not stored: %s', self._spec.name, error)
