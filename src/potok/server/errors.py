"""Errors of the server, with their HTTP status.

ServingError
├── NoToken              a request without a token, or with an unknown one
├── NotAllowed           a token without the scope that a request needs
├── TooManyRequests      a token that exceeds its rate
├── ForeignPage          a browser request on behalf of another site
├── ForeignHost          a request to another host name
├── BadRequest           a body or a parameter that cannot be read
├── NotThere             a path that does not exist
├── BodyTooLarge, HeadTooLarge, TooManyRows, AnswerTooLarge, TooLong, TooSlow, TooManyPushes, OutOfMemory,
│   Busy                 a limit was reached
├── UnknownContent       a body of a type that is not accepted
├── KeyUsedBefore        an idempotency key that was used for other records
├── NoChanges            a table without a changelog topic
├── WrongMethod          a page that does not support the method of a request
├── PageFailed           a page that raised
└── OpenToAll, BadTokens    a server that must not start
"""

from __future__ import annotations

import math

from potok.errors import PotokError, SetupError


class ServingError(PotokError):
    """An error with its HTTP `status`; `retry_after_s` is sent as `Retry-After`, 0 if a retry does not help."""

    status = 400
    retry_after_s = 0


class InternalError(ServingError):
    """An unexpected exception; its message is only logged."""

    status = 500

    def __init__(self, kind: str) -> None:
        hint = "report this bug with the request and the details in the server's log"
        super().__init__(f"internal error in Potok: {kind}", hint=hint)


class NoToken(ServingError):
    status = 401

    def __init__(self) -> None:
        hint = 'send the header "Authorization: Bearer <token>", or a user name and the token as password'
        super().__init__("the server requires a token", hint=hint)


class NotAllowed(ServingError):
    status = 403

    def __init__(self, scope: str, who: str, name: str = "", *, is_limited: bool = False) -> None:
        hint = f'use a token whose scopes contain "{scope}"'
        if is_limited:
            hint += f', or "{scope}:" and the beginning of the name' if name else "; this concerns all names"
        in_general, to = _DEEDS[scope]
        deed = f'{to} "{name}"' if name else in_general
        super().__init__(f'the token "{who}" may not {deed}', hint=hint)


class TooManyRequests(ServingError):
    status = 429

    def __init__(self, per_second: float, wait_s: float) -> None:
        self.retry_after_s = max(1, math.ceil(wait_s))
        super().__init__(f"the limit of {per_second:g} requests per second is reached", hint="send fewer requests")


_DEEDS = {
    "read": ("read", "read"),
    "write": ("write records", "write to"),
    "admin": ("change the catalog or control queries", "change or control"),
}


class ForeignPage(ServingError):
    status = 403

    def __init__(self, what: str) -> None:
        hint = "call the server by its own address; pages of other sites need potok serve --cors <origin>"
        super().__init__(f"requests from {what} are rejected", hint=hint)


class ForeignHost(ServingError):
    status = 403

    def __init__(self, host: str) -> None:
        hint = "call the server by its own address, or start it with potok serve --allowed-host <name>"
        super().__init__(f'requests to the host "{host[:200]}" are rejected', hint=hint)


class BadRequest(ServingError):
    status = 400


class NotThere(ServingError):
    status = 404


class BodyTooLarge(ServingError):
    status = 413

    def __init__(self, limit: int) -> None:
        hint = "send it in parts, or start the server with a larger limit"
        super().__init__(f"the body of the request exceeds the limit of {limit:,} bytes", hint=hint)


class TooManyRows(ServingError):
    status = 400

    def __init__(self, limit: int) -> None:
        super().__init__(f"the response has more than {limit:,} rows", hint="write LIMIT, or select fewer keys")


class AnswerTooLarge(ServingError):
    status = 400

    def __init__(self, limit: int) -> None:
        hint = "write LIMIT, or select fewer keys or columns"
        super().__init__(f"the response has more than {limit:,} bytes", hint=hint)


class TooLong(ServingError):
    status = 503

    def __init__(self, seconds: float) -> None:
        hint = "select less: a key, a range of keys, a LIMIT"
        super().__init__(f"the response took longer than {seconds:g} seconds", hint=hint)


class OutOfMemory(ServingError):
    status = 503
    retry_after_s = 5

    def __init__(self) -> None:
        hint = "select less: a key, a LIMIT, shorter values"
        super().__init__("the server does not have enough memory for this statement", hint=hint)


class Busy(ServingError):
    status = 503
    retry_after_s = 1

    def __init__(self) -> None:
        super().__init__("the server is processing too many requests", hint="send it again later")


class HeadTooLarge(ServingError):
    status = 431

    def __init__(self, limit: int) -> None:
        hint = "send shorter headers, and long values in the body"
        super().__init__(f"the request line and the headers exceed the limit of {limit:,} bytes", hint=hint)


class TooSlow(ServingError):
    """The client stopped reading the response."""

    status = 408

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the client accepted no data for {seconds:g} seconds",
            hint="connect again; a feed resumes after the event that Last-Event-ID names",
        )


class TooManyPushes(ServingError):
    status = 429
    retry_after_s = 5

    def __init__(self, limit: int) -> None:
        hint = "close one of them: close its connection, or POST /close-query"
        super().__init__(f"the limit of {limit} open push queries is reached", hint=hint)


class UnknownContent(ServingError):
    status = 415


class KeyUsedBefore(ServingError):
    status = 422

    def __init__(self, key: str) -> None:
        hint = "choose another key for other records"
        super().__init__(f'the idempotency key "{key}" was used for other records', hint=hint)


class NoChanges(ServingError):
    status = 404

    def __init__(self, table: str) -> None:
        hint = f'write them to a topic: app.Table(..., changelog_topic="{table.lower()}-changes")'
        super().__init__(f"table {table} has no changelog topic", hint=hint)


class WrongMethod(ServingError):
    status = 405

    def __init__(self, method: str, path: str, methods: list[str]) -> None:
        super().__init__(f"{path} does not support {method}", hint=f"use {', '.join(methods)}")


class PageFailed(ServingError):
    status = 500

    def __init__(self, path: str) -> None:
        super().__init__(f"the page {path} failed", hint="the log of the worker says why")


class OpenToAll(SetupError):
    """The server would listen on a public address without tokens."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f'a server without tokens cannot listen on "{host}"',
            hint="make a token (potok tokens add NAME --scope read), pass --tokens FILE, or listen on 127.0.0.1",
        )


class BadTokens(SetupError):
    """The token file is invalid."""
