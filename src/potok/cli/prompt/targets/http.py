"""Send requests to a server."""

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
CUT_OFF = "it was cut off"


class NoServer(SetupError):
    """The server does not respond, or is not a Potok server."""

    def __init__(self, url: str, why: str) -> None:
        hint = "is it running? potok serve starts one; --server names another"
        super().__init__(f"no answer from {url}: {why}", hint=hint)


class StrangeResponse(SetupError):
    """A response that no Potok server writes: a proxy cut it off or replaced it, or it is another server."""

    def __init__(self, url: str, why: str) -> None:
        hint = "a proxy may have changed or cut off the response; --server names the server without it"
        super().__init__(f"the response of {url} cannot be read: {why}", hint=hint)


MALFORMED = (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError)
"""What reading a response of an unexpected shape raises."""


class ServerRefused(PotokError):
    """An error of a server that has no position in a statement."""


class StatementRefused(SqlError):
    """An error of a server about a statement; its position refers to the text that was sent."""


class Answer:
    """A response that has started and may take any time to end."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection, self._socket = connection, connection.sock
        self.response = connection.getresponse()

    def interrupt(self) -> None:
        """End the response from another thread; the reading thread closes it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._connection.close()


class Http:
    """Opens one connection per request: requests are few, and a push query needs its own."""

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
            _check_token(token)
            self._headers["Authorization"] = f"Bearer {token}"

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the JSON of a response; raises the error that the server reports."""
        answer = self.open(path, body, "application/json")
        try:
            return json.loads(answer.response.read(), parse_float=Decimal)
        except http.client.IncompleteRead as error:
            raise StrangeResponse(self.url, CUT_OFF) from error
        except (OSError, http.client.HTTPException) as error:
            raise NoServer(self.url, str(error) or type(error).__name__) from error
        except MALFORMED as error:
            raise StrangeResponse(self.url, "it is not JSON") from error
        finally:
            answer.close()

    def open(self, path: str, body: Mapping[str, Any], accept: str) -> Answer:
        """Return a response that has started; the caller closes it."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=CONNECT_S)
        try:
            connection.connect()
            connection.sock.settimeout(None)
            connection.request("POST", self._path + path, json.dumps(body), {**self._headers, "Accept": accept})
            answer = Answer(connection)
            if answer.response.status == 200:
                return answer
            raise self._refusal(answer.response)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise NoServer(self.url, getattr(error, "strerror", None) or str(error) or type(error).__name__) from error
        except BaseException:
            connection.close()
            raise

    def _refusal(self, response: http.client.HTTPResponse) -> PotokError:
        try:
            return _refusal(response.status, response.read())
        except http.client.IncompleteRead:
            return StrangeResponse(self.url, f"status {response.status}, and {CUT_OFF}")
        except MALFORMED:
            return StrangeResponse(self.url, f"status {response.status}, with an error of unknown form")


def _check_token(token: str) -> None:
    """Raise if HTTP cannot carry a token, without showing it."""
    if not token.isascii() or not token.isprintable():
        hint = "a token is one line of ASCII text; a file read with cat often adds a line break"
        raise SetupError("the token cannot be sent: it has line breaks or characters other than ASCII", hint=hint)


def _port(url: str, port: int | None) -> int:
    return port if port is not None else 443 if url.startswith("https:") else 8088


def _refusal(status: int, body: bytes) -> PotokError:
    """Parse an error in the format of Potok or of ksqlDB."""
    if status == http.client.UNAUTHORIZED:
        return ServerRefused("the server requires a token", hint="pass --token, or set POTOK_TOKEN")
    try:
        response = json.loads(body)
    except (ValueError, RecursionError):
        response = {}
    if not isinstance(response, dict) or not ("detail" in response or "message" in response):
        return ServerRefused(f"the server responded with status {status}", hint="is it a Potok server?")
    if "detail" not in response:
        return refusal_of_ksql(response)
    if "line" in response:
        line, column, length = int(response["line"]), int(response["column"]), int(response.get("length", 1))
        location = SourceLocation(line, column, length)
        return StatementRefused(str(response["detail"]), hint=str(response.get("hint", "")), location=location)
    return ServerRefused(str(response["detail"]), hint=str(response.get("hint", "")))


def refusal_of_ksql(response: Mapping[str, Any]) -> PotokError:
    """Split the hint from the message; ksqlDB's error format has no separate field for it."""
    message, _, hint = str(response.get("message", "")).partition("\n  hint: ")
    return ServerRefused(message, hint=hint)
