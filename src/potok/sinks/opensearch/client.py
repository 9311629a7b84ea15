"""Requests to OpenSearch and Elasticsearch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from potok.redact import redact, safe_cause
from potok.sinks.urls import clear_url, remember_url

NOT_NOW = frozenset({408, 429, 500, 502, 503, 504})
"""Answers that a retry may change."""

_BEGINNING = 500


class NoAnswer(Exception):
    """The server did not answer, or not with JSON."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of the server."""

    status: int
    body: Any

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300

    def __str__(self) -> str:
        error = self.body.get("error") if isinstance(self.body, dict) else None
        text = describe_error(error) if error else str(self.body)
        return redact(f"HTTP {self.status}: {text}"[:_BEGINNING])


class OpenSearchClient:
    """Sends requests to one server, or to the load balancer before several."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout_ms: int) -> None:
        remember_url(url, headers.items())
        parts = clear_url(url)
        self._headers = dict(headers)
        if parts.user:
            self._headers |= urllib3.make_headers(basic_auth=f"{parts.user}:{parts.password or ''}")
        self._base = str(parts._replace(user=None, password=None)).rstrip("/")
        self._pool = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(total=timeout_ms / 1000))

    def request(self, method: str, path: str, body: bytes | None = None, *, lines: bool = False) -> Response:
        kind = "application/x-ndjson" if lines else "application/json"
        headers = {**self._headers, "Content-Type": kind} if body is not None else self._headers
        try:
            found = self._pool.request(method, f"{self._base}{path}", body=body, headers=headers, redirect=False)
            data = found.data
        except HTTPError as error:
            raise NoAnswer(redact(str(error))) from safe_cause(error)
        try:
            return Response(found.status, orjson.loads(data) if data else {})
        except orjson.JSONDecodeError as error:
            if 200 <= found.status < 300:
                raise NoAnswer("the answer is not JSON: is this the address of the server?") from error
            return Response(found.status, data[:_BEGINNING].decode("utf-8", "replace"))

    def close(self) -> None:
        self._pool.clear()


def describe_error(error: Any) -> str:
    """Return type and reason of an error, and those of its cause."""
    if not isinstance(error, dict):
        return str(error)
    text = f"{error.get('type', 'error')}: {error.get('reason', '')}"
    cause = error.get("caused_by")
    return redact(f"{text} ({describe_error(cause)})" if isinstance(cause, dict) else text)
