"""Requests to a server."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from potok.errors import PotokError, SetupError
from potok.redact import redact_url, remember, split_url
from potok.sql.errors import SourceLocation, SqlError

CONNECT_S = 10.0


class NoServer(SetupError):
    """An address at which nobody answers, or not as a server of Potok does."""

    def __init__(self, url: str, why: str) -> None:
        hint = "is it running? potok serve starts one; --server names another"
        super().__init__(f"no answer from {url}: {why}", hint=hint)


class ServerRefused(PotokError):
    """What a server says of a request that has no place in a statement."""


class StatementRefused(SqlError):
    """What a server says of a statement; its place is one in the text that was sent."""


class Answer:
    """An answer that has begun, and may take any time to end."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection, self._socket = connection, connection.sock
        self.response = connection.getresponse()

    def interrupt(self) -> None:
        """End it from another thread than the one that reads, which closes it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._connection.close()


class Http:
    """One connection for each request: they are few, and a push query needs its own anyway."""

    def __init__(self, url: str, token: str | None) -> None:
        full = url if "://" in url else f"http://{url}"
        clear = split_url(full)
        if clear is None or clear.scheme not in ("http", "https") or not clear.hosts:
            hint = "write --server http://localhost:8088"
            raise SetupError(f'"{redact_url(full)}" is not the address of a server', hint=hint)
        parts = urlsplit(str(clear))
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", _port(url, parts.port)
        self._path = parts.path.rstrip("/")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{self._path}"
        self._headers = {"Content-Type": "application/json"}
        if token:
            remember(token)
            self._headers["Authorization"] = f"Bearer {token}"

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON of an answer; raises what the server says is wrong."""
        answer = self.open(path, body, "application/json")
        try:
            return json.loads(answer.response.read(), parse_float=Decimal)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoServer(self.url, str(error) or type(error).__name__) from error
        finally:
            answer.close()

    def open(self, path: str, body: Mapping[str, Any], accept: str) -> Answer:
        """An answer that has begun; whoever opens it closes it."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=CONNECT_S)
        try:
            connection.connect()
            connection.sock.settimeout(None)
            connection.request("POST", self._path + path, json.dumps(body), {**self._headers, "Accept": accept})
            answer = Answer(connection)
            if answer.response.status == 200:
                return answer
            raise _refusal(answer.response.status, answer.response.read())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise NoServer(self.url, getattr(error, "strerror", None) or str(error) or type(error).__name__) from error
        except BaseException:
            connection.close()
            raise


def _port(url: str, port: int | None) -> int:
    return port if port is not None else 443 if url.startswith("https:") else 8088


def _refusal(status: int, body: bytes) -> PotokError:
    """Our own form of an error, or the one that ksqlDB has."""
    if status == http.client.UNAUTHORIZED:
        return ServerRefused("this server answers only with a token", hint="give it with --token, or in POTOK_TOKEN")
    try:
        response = json.loads(body)
    except ValueError:
        response = {}
    if not isinstance(response, dict) or not ("detail" in response or "message" in response):
        return ServerRefused(f"the server answers with status {status}", hint="is it a server of Potok?")
    if "detail" not in response:
        return refusal_of_ksql(response)
    if "line" in response:
        location = SourceLocation(response["line"], response["column"], response.get("length", 1))
        return StatementRefused(response["detail"], hint=response.get("hint", ""), location=location)
    return ServerRefused(response["detail"], hint=response.get("hint", ""))


def refusal_of_ksql(response: Mapping[str, Any]) -> PotokError:
    """ksqlDB has no other place for a hint than the message, whose text says it all."""
    message, _, hint = str(response.get("message", "")).partition("\n  hint: ")
    return ServerRefused(message, hint=hint)
