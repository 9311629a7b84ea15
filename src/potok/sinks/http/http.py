"""POST records to a URL, as JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from potok.errors import TopologyError
from potok.sinks.guarantee import Guarantee
from potok.sinks.json_bodies import json_bodies
from potok.sinks.sink_spec import Opening, Prepared, Rows, SinkSpec, SinkWriter, Types
from potok.sinks.urls import address_of, clear_url


@dataclass(frozen=True, slots=True)
class HttpTarget(SinkSpec):
    """A URL that accepts POST requests. The headers may contain secrets and are not shown."""

    verb: ClassVar[str] = "to_http"

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    batch: int
    concurrency: int
    timeout_ms: int
    give_up_after_ms: int | None
    with_key: bool

    @property
    def label(self) -> str:
        return address_of(self.url)

    def check(self, types: Types, guarantee: Guarantee) -> None:
        if self.url.partition(":")[0] not in ("http", "https") or not clear_url(self.url).hosts:
            raise TopologyError("this is not an HTTP address", hint='write "https://example.org/orders"')
        for what, number in (("batch", self.batch), ("concurrency", self.concurrency)):
            if number < 1:
                raise TopologyError(f"{what}={number} is too small", hint=f"write {what}=1 or more")
        for name, value in self.headers:
            check_header(name, value)
        given = {name.lower() for name, _ in self.headers}
        if "idempotency-key" in given:
            hint = "leave it out: each request gets a key of its own"
            raise TopologyError("the header Idempotency-Key is set by Potok", hint=hint)

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """Prepare bodies as values; keys only decide which records must stay in order."""
        bodies = json_bodies(rows, with_key=self.with_key)
        keys = json_bodies(Rows(rows.key, rows.key, rows.timestamp), with_key=False)
        return Prepared(keys.values, bodies.values, bodies.errors)

    def open(self, opening: Opening) -> SinkWriter:
        from potok.sinks.http.writer import HttpWriter  # imports the client

        return HttpWriter(self, opening)


_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def check_header(name: str, value: str) -> None:
    """Raise if HTTP cannot carry a header. The value may be a secret and is not shown."""
    if not _NAME.fullmatch(name):
        raise TopologyError(
            f"{name!r} is not the name of a header", hint='write headers={"X-Source": "shop"}, for example'
        )
    if not _VALUE.fullmatch(value):
        hint = "HTTP headers hold Latin-1 text on one line; encode other text, for example with urllib.parse.quote"
        raise TopologyError(f'the value of header "{name}" cannot be sent', hint=hint)
