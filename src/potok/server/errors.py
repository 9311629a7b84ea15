"""Errors of the server, with their HTTP status.

ServingError
├── NoToken              a request without a token, or with an unknown one
├── NotAllowed           a token without the scope that a request needs
├── ForeignPage          a browser request on behalf of another site
├── BadRequest           a body or a parameter that cannot be read
├── NotThere             a path that names nothing
├── BodyTooLarge, HeadTooLarge, TooManyRows, AnswerTooLarge, TooLong, TooSlow, TooManyPushes, OutOfMemory,
│   Busy                 a limit was reached
├── KeyUsedBefore        an idempotency key that came with other records
├── NoChanges            a table without a changelog topic
├── WrongMethod          a page that does not take the method of a request
├── PageFailed           a page that raised
└── OpenToAll, BadTokens    a server that must not start
"""

from __future__ import annotations

from potok.errors import PotokError, SetupError


class ServingError(PotokError):
    """`status` is that of HTTP; `retry_after_s` tells a client when to send its request again, 0 if that is no help."""

    status = 400
    retry_after_s = 0


class InternalError(ServingError):
    """An unexpected exception; its message is only logged."""

    status = 500

    def __init__(self, kind: str) -> None:
        hint = "the log of the server has it in full: report that, with the request"
        super().__init__(f"an internal error of Potok: {kind}", hint=hint)


class NoToken(ServingError):
    status = 401

    def __init__(self) -> None:
        hint = 'send the header "Authorization: Bearer <token>", or a user name and the token as password'
        super().__init__("the server requires a token", hint=hint)


class NotAllowed(ServingError):
    status = 403

    def __init__(self, scope: str, who: str) -> None:
        hint = f'use a token whose scopes contain "{scope}"'
        super().__init__(f'the token "{who}" may not {_DEEDS[scope]}', hint=hint)


_DEEDS = {"read": "read", "write": "write records", "admin": "change the catalog or control queries"}


class ForeignPage(ServingError):
    status = 403

    def __init__(self, what: str) -> None:
        hint = "call the server by its own address; pages of other sites need potok serve --cors <origin>"
        super().__init__(f"requests from {what} are not answered", hint=hint)


class BadRequest(ServingError):
    status = 400


class NotThere(ServingError):
    status = 404


class BodyTooLarge(ServingError):
    status = 413

    def __init__(self, limit: int) -> None:
        hint = "send it in parts, or start the server with a larger limit"
        super().__init__(f"the body of a request has at most {limit:,} bytes here", hint=hint)


class TooManyRows(ServingError):
    status = 400

    def __init__(self, limit: int) -> None:
        super().__init__(f"the answer has more than {limit:,} rows", hint="write LIMIT, or ask for a part of the keys")


class AnswerTooLarge(ServingError):
    status = 400

    def __init__(self, limit: int) -> None:
        hint = "write LIMIT, ask for a part of the keys or for fewer columns"
        super().__init__(f"the answer has more than {limit:,} bytes", hint=hint)


class TooLong(ServingError):
    status = 503

    def __init__(self, seconds: float) -> None:
        hint = "ask for less: a key, a range of keys, a LIMIT"
        super().__init__(f"the answer took longer than {seconds:g} seconds", hint=hint)


class OutOfMemory(ServingError):
    status = 503
    retry_after_s = 5

    def __init__(self) -> None:
        hint = "ask for less: a key, a LIMIT, shorter values"
        super().__init__("the memory of the server does not suffice for this statement", hint=hint)


class Busy(ServingError):
    status = 503
    retry_after_s = 1

    def __init__(self) -> None:
        super().__init__("the server has too many requests at this moment", hint="send it again later")


class HeadTooLarge(ServingError):
    status = 431

    def __init__(self, limit: int) -> None:
        hint = "send shorter headers, and what is long in the body"
        super().__init__(f"the first line and the headers of a request have at most {limit:,} bytes here", hint=hint)


class TooSlow(ServingError):
    """The client stopped reading the response."""

    status = 408

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"nothing was taken for {seconds:g} seconds, so no more is sent",
            hint="ask again; a feed goes on behind the last event that its Last-Event-ID names",
        )


class TooManyPushes(ServingError):
    status = 429
    retry_after_s = 5

    def __init__(self, limit: int) -> None:
        hint = "end one of them: close its connection, or POST /close-query"
        super().__init__(f"{limit} push queries are open already, and no more are allowed here", hint=hint)


class KeyUsedBefore(ServingError):
    status = 422

    def __init__(self, key: str) -> None:
        hint = "choose another key for other records"
        super().__init__(f'the idempotency key "{key}" came with other records before', hint=hint)


class NoChanges(ServingError):
    status = 404

    def __init__(self, table: str) -> None:
        hint = f'write them to a topic: app.Table(..., changelog_topic="{table.lower()}-changes")'
        super().__init__(f"the changes of table {table} are not written down", hint=hint)


class WrongMethod(ServingError):
    status = 405

    def __init__(self, method: str, path: str, methods: list[str]) -> None:
        super().__init__(f"{path} does not take {method}", hint=f"it takes {', '.join(methods)}")


class PageFailed(ServingError):
    status = 500

    def __init__(self, path: str) -> None:
        super().__init__(f"the page {path} failed", hint="the log of the worker says why")


class OpenToAll(SetupError):
    """The server would listen on a public address without tokens."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f'without tokens a server listens on this machine alone, not on "{host}"',
            hint="write a tokens.toml and pass --tokens tokens.toml, set POTOK_TOKENS, or listen on 127.0.0.1",
        )


class BadTokens(SetupError):
    """The token file is invalid."""
