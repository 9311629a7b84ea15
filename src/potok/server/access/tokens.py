"""Authorization: tokens with scopes, from a file or from the environment."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from potok.server.errors import BadTokens, NotAllowed, NoToken

READ, WRITE, ADMIN = SCOPES = ("read", "write", "admin")
VARIABLE = "POTOK_TOKENS"
SHORTEST = 16


@dataclass(frozen=True, slots=True)
class Caller:
    """Sender of a request. The scope `admin` includes all others."""

    name: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        return scope in self.scopes or ADMIN in self.scopes

    def require(self, scope: str) -> None:
        if not self.may(scope):
            raise NotAllowed(scope, self.name)


ANYBODY = Caller("anybody", frozenset(SCOPES))
"""Sender on this machine if no tokens are configured."""


class Tokens:
    """Tokens, stored as digests: comparisons have a fixed length, and a memory dump shows no token.

    >>> Tokens.load("tokens.toml")

    `tokens.toml` has one table per token, with the token or its digest:

    [[token]]
    name = "dashboard"
    scopes = ["read"]
    sha256 = "..."
    """

    def __init__(self, callers: Mapping[bytes, Caller]) -> None:
        self._callers = dict(callers)

    def __bool__(self) -> bool:
        return bool(self._callers)

    def __len__(self) -> int:
        return len(self._callers)

    @classmethod
    def load(cls, path: str | Path | None = None, environ: Mapping[str, str] | None = None) -> Tokens:
        """Load the tokens of a file and of `POTOK_TOKENS`."""
        environ = os.environ if environ is None else environ
        found = dict(_of_text(environ.get(VARIABLE, "")))
        if path is not None:
            found |= dict(_of_file(Path(path)))
        return cls(found)

    def caller(self, authorization: str | None) -> Caller:
        """Return the sender with the token in the header; without configured tokens, the local sender."""
        if not self._callers:
            return ANYBODY
        given = hashlib.sha256(_presented(authorization)).digest()
        found: Caller | None = None
        for digest, caller in self._callers.items():  # compare all, for constant time
            if hmac.compare_digest(digest, given):
                found = caller
        if found is None:
            raise NoToken
        return found

    def known(self, authorization: str | None) -> Caller | None:
        """Return the sender like `caller`; None if there is no valid token."""
        try:
            return self.caller(authorization)
        except NoToken:
            return None


def _presented(authorization: str | None) -> bytes:
    kind, _, rest = (authorization or "").partition(" ")
    if kind.lower() == "bearer":
        return rest.strip().encode()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
        except ValueError:  # not base64, or not ASCII
            return b""
    return b""


def _of_text(text: str) -> Iterable[tuple[bytes, Caller]]:
    """`read=TOKEN`, `read+write=TOKEN`: separated by blanks or commas."""
    for number, word in enumerate(text.replace(",", " ").split()):
        scopes, equals, token = word.partition("=")
        if not equals:
            hint = f'write {VARIABLE}="read=TOKEN admin=OTHER"'
            raise BadTokens(f"part {number + 1} of {VARIABLE} has no scopes", hint=hint)
        name = f"{VARIABLE} {number + 1}"
        yield _digest(token, name), Caller(name, _scopes(scopes.split("+"), name))


def _of_file(path: Path) -> Iterable[tuple[bytes, Caller]]:
    try:
        with path.open("rb") as file:
            tables = tomllib.load(file).get("token", [])
    except OSError as error:
        raise BadTokens(f"cannot read tokens from {path}: {error.strerror}", hint="name a file that exists") from error
    except tomllib.TOMLDecodeError as error:
        raise BadTokens(f"{path} is not valid TOML: {error}", hint="correct the line that it names") from error
    if not isinstance(tables, list) or not tables:
        raise BadTokens(f"there are no tokens in {path}", hint='begin each with a line "[[token]]"')
    for table in tables:
        yield _of_table(table, path)


def _of_table(table: Any, path: Path) -> tuple[bytes, Caller]:
    name = str(table.get("name", "")) if isinstance(table, dict) else ""
    if not name:
        raise BadTokens(f"a token in {path} has no name", hint='write name = "..." below its [[token]]')
    caller = Caller(name, _scopes(table.get("scopes", []), name))
    if "sha256" in table:
        try:
            digest = bytes.fromhex(str(table["sha256"]))
        except ValueError:
            digest = b""
        if len(digest) != hashlib.sha256().digest_size:
            raise BadTokens(f'the sha256 of token "{name}" is invalid', hint="write its 64 hexadecimal digits")
        return digest, caller
    return _digest(str(table.get("token", "")), name), caller


def _digest(token: str, name: str) -> bytes:
    if len(token) < SHORTEST:
        hint = f"use {SHORTEST} characters or more: python -c 'import secrets; print(secrets.token_urlsafe())'"
        raise BadTokens(f'token "{name}" is too short to be secret', hint=hint)
    return hashlib.sha256(token.encode()).digest()


def _scopes(given: Any, name: str) -> frozenset[str]:
    scopes = frozenset(str(scope) for scope in given) if isinstance(given, list) else frozenset()
    if not scopes or not scopes <= set(SCOPES):
        hint = f"use one or more of: {', '.join(SCOPES)}"
        raise BadTokens(f'token "{name}" has no known scopes', hint=hint)
    return scopes
