"""Send one POST request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import urllib3
from urllib3.exceptions import ConnectTimeoutError, DecodeError, HTTPError, NewConnectionError

from potok.redact import redact, safe_cause
from potok.sinks.urls import clear_url, remember_url

BEGINNING = 500
"""The number of characters of an answer that messages show."""

MOST_BYTES = 64 * 1024
"""The most that is read of an answer. A connection with a longer one is closed."""

LONGEST_S = 3600.0
"""The longest pause that a server can request."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a server."""

    status: int
    text: str
    retry_after_s: float

    @property
    def taken(self) -> bool:
        return 200 <= self.status < 300

    def __str__(self) -> str:
        return f"HTTP {self.status}: {self.text}" if self.text else f"HTTP {self.status}"


class Unanswered(Exception):
    """No response. `sent` says that the request may have arrived nevertheless."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason, self.sent = reason, sent


class Client:
    """Posts to one URL, over persistent connections."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout_ms: int, connections: int) -> None:
        remember_url(url, headers.items())
        self._url = str(clear_url(url))
        self._headers = {"Content-Type": "application/json", "User-Agent": "potok", **headers}
        self._pool = urllib3.PoolManager(
            maxsize=connections, block=True, retries=False, timeout=urllib3.Timeout(total=timeout_ms / 1000)
        )

    def post(self, body: bytes, more_headers: Mapping[str, str]) -> Answer:
        headers = {**self._headers, **more_headers}
        try:
            found = self._pool.request(
                "POST", self._url, body=body, headers=headers, redirect=False, preload_content=False
            )
        except (NewConnectionError, ConnectTimeoutError) as error:
            raise Unanswered(redact(f"no connection: {error}"), sent=False) from safe_cause(error)
        except HTTPError as error:
            raise Unanswered(redact(f"no answer: {error}"), sent=True) from safe_cause(error)
        text = self._text(found)
        location = found.headers.get("Location", "")
        if location and 300 <= found.status < 400:
            text = f"it redirects to {location}: post there. {text}".strip()
        pause_s = _seconds(found.headers.get("Retry-After", ""), found.headers.get("Date", ""))
        return Answer(found.status, redact(text), pause_s)

    def _text(self, found: urllib3.BaseHTTPResponse) -> str:
        """Return the beginning of the body. A rejection counts by its status alone; an acceptance must be complete,
        because a server may fail while it writes its answer."""
        try:
            return _beginning(found)
        except HTTPError as error:
            found.close()
            why = "garbled" if isinstance(error, DecodeError) else "cut off"
            if 200 <= found.status < 300:
                raise Unanswered(f"HTTP {found.status}, but the answer was {why}", sent=True) from safe_cause(error)
            return f"(the answer was {why})"

    def close(self) -> None:
        self._pool.clear()


def _beginning(answer: urllib3.BaseHTTPResponse) -> str:
    """Return the first characters of an answer, and give its connection back to the pool if it ends soon."""
    data = answer.read(MOST_BYTES, decode_content=True)
    if answer.read(1, decode_content=True):
        answer.close()
    answer.release_conn()
    return data[: 4 * BEGINNING].decode("utf-8", "replace")[:BEGINNING].strip()


def _seconds(header: str, now: str) -> float:
    """Parse `Retry-After`: seconds, or a date, which counts from the date of the answer, so clocks need not agree."""
    if header.isascii() and header.isdigit():
        return min(float(header), LONGEST_S)
    try:
        pause = parsedate_to_datetime(header) - parsedate_to_datetime(now)
    except (TypeError, ValueError):
        return 0.0
    return min(max(pause.total_seconds(), 0.0), LONGEST_S)
