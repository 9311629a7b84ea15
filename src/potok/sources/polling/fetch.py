"""Fetch a resource unless it is the one that is known."""

from __future__ import annotations

from dataclasses import dataclass

import urllib3

from potok.redact import is_secret, remember
from potok.sinks.webhooks.signing import read_secret
from potok.sources.bodies import BodyTooLarge

_CHUNK = 1 << 16
_MOST_RETRY_AFTER_S = 3_600.0


class Unavailable(Exception):
    """The endpoint did not answer, or with an error."""

    def __init__(self, why: str, retry_after_s: float = 0.0) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Response:
    """A new answer, and the headers by which the server recognises it."""

    body: bytes
    validators: dict[str, str]


class Fetch:
    """Requests to one URL."""

    def __init__(self, url: str, headers: tuple[str, ...], max_body: int, timeout_s: float) -> None:
        self._url, self._max_body = url, max_body
        self._headers = {"Accept-Encoding": "gzip, deflate", "User-Agent": "potok"}
        for each in headers:
            name, _, value = each.partition(":")
            self._headers[name.strip()] = found = read_secret(value.strip())
            if is_secret(name) or found != value.strip():
                remember(found)
        self._pool = urllib3.PoolManager(timeout=timeout_s, retries=urllib3.Retry(0, redirect=5))

    def __call__(self, validators: dict[str, str]) -> Response | None:
        """Return the answer; None if it has not changed. Raises `Unavailable` and `BodyTooLarge`."""
        try:
            response = self._pool.request(
                "GET", self._url, headers={**self._headers, **validators}, preload_content=False
            )
            try:
                return self._read(response)
            finally:
                response.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"the endpoint does not respond: {error}") from error

    def close(self) -> None:
        self._pool.clear()

    def _read(self, response: urllib3.BaseHTTPResponse) -> Response | None:
        if response.status == 304:
            return None
        if response.status != 200:
            after = response.headers.get("Retry-After", "")
            delay_s = min(float(after), _MOST_RETRY_AFTER_S) if after.isdecimal() else 0.0
            raise Unavailable(f"the endpoint responded with {response.status}", delay_s)
        body = bytearray()
        for chunk in response.stream(_CHUNK, decode_content=True):
            body += chunk
            if len(body) > self._max_body:
                response.close()
                raise BodyTooLarge
        names = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
        validators = {asked: response.headers[name] for name, asked in names.items() if name in response.headers}
        return Response(bytes(body), validators)
