"""Tokens with scopes, from a file or from the environment."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

from potok.server.access.callers import ADMIN, ANYBODY, READ, SCOPES, WRITE, Caller
from potok.server.access.token_file import TokenFile, caller_with, digest_of
from potok.server.errors import BadTokens, NoToken

__all__ = ["ADMIN", "ANYBODY", "READ", "SCOPES", "VARIABLE", "WRITE", "Caller", "Tokens"]

log = logging.getLogger(__name__)

VARIABLE = "POTOK_TOKENS"

CHECK_S = 1.0
"""How often the file is checked for changes."""


class Tokens:
    """Tokens, stored as digests: comparisons have a fixed length, and a memory dump shows no token.

    >>> Tokens.load("tokens.toml")

    A changed file is read again while the server runs, so a removed token is rejected within a second. A file that
    cannot be read leaves the tokens as they were.
    """

    def __init__(self, callers: Mapping[bytes, Caller], file: TokenFile | None = None) -> None:
        self._fixed, self._file = dict(callers), file
        self._callers = {**self._fixed, **(file.read() if file is not None else {})}
        if file is not None and len(self._callers) == len(self._fixed):
            hint = f"add one: potok tokens add NAME --scope read --file {file.path}"
            raise BadTokens(f"there are no tokens in {file.path}", hint=hint)
        self._are_required = bool(self._callers)
        self._checked_at = time.monotonic()

    def __bool__(self) -> bool:
        """Whether requests need a token, also when the last one was removed from the file."""
        return self._are_required

    def __len__(self) -> int:
        return len(self._callers)

    @classmethod
    def load(cls, path: str | Path | None = None, environ: Mapping[str, str] | None = None) -> Tokens:
        """Load the tokens of a file and of `POTOK_TOKENS`."""
        environ = os.environ if environ is None else environ
        return cls(_of_text(environ.get(VARIABLE, "")), None if path is None else TokenFile(Path(path)))

    def caller(self, authorization: str | None) -> Caller:
        """Return the sender with the token in the header; without configured tokens, the local sender."""
        if not self._are_required:
            return ANYBODY
        if self._file is not None and time.monotonic() - self._checked_at > CHECK_S:
            self._read_again(self._file)
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

    def _read_again(self, file: TokenFile) -> None:
        self._checked_at = time.monotonic()
        try:
            if file.has_changed():
                self._callers = {**self._fixed, **file.read()}
                log.info("read %s again: %d tokens", file.path, len(self._callers))
        except BadTokens as error:
            log.error("the tokens stay as they were: %s", error.message)


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


def _of_text(text: str) -> dict[bytes, Caller]:
    """`read=TOKEN`, `read:orders-+write=TOKEN`: separated by blanks or commas."""
    found = {}
    for number, word in enumerate(text.replace(",", " ").split()):
        scopes, equals, token = word.partition("=")
        if not equals:
            hint = f'write {VARIABLE}="read=TOKEN admin=OTHER"'
            raise BadTokens(f"part {number + 1} of {VARIABLE} has no scopes", hint=hint)
        name = f"{VARIABLE} {number + 1}"
        found[digest_of(token, name)] = caller_with(name, scopes.split("+"))
    return found
