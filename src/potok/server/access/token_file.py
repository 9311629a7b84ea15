"""The file of tokens: one table each, with its scopes and the digest of the token."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import stat
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from potok.permissions import private_opener
from potok.server.access.callers import SCOPES, Caller
from potok.server.errors import BadTokens

log = logging.getLogger(__name__)

SHORTEST = 16

_TABLE = re.compile(r"^[ \t]*\[\[[ \t]*token[ \t]*\]\]", re.MULTILINE)
_NAME = re.compile(r"[\w.@-]{1,100}", re.ASCII)
_SCOPE = re.compile(r"(read|write|admin)(:[^\x00-\x1f\x7f\"\\]{1,255})?")

_HEADER = """\
# Tokens of the HTTP server. Only digests are stored; `potok tokens --help` has the commands.
"""


class TokenFile:
    """`tokens.toml`. Each table has `name`, `scopes`, optionally `per_second`, and `sha256`, the digest of the token.

    Instead of a digest, `token` may be the token itself, which anyone who can read the file can use.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None

    def has_changed(self) -> bool:
        """Whether the file has changed since it was read last."""
        seen = self._identity()
        if seen == self._seen:
            return False
        self._seen = seen
        return True

    def read(self) -> dict[bytes, Caller]:
        """Return the callers by the digest of their token. Raises `BadTokens` if a table is invalid."""
        self._seen = self._identity()
        tables = self._tables(self._text())
        for table in tables:
            if isinstance(table, dict) and "token" in table:
                log.warning('token "%s" is in %s as text: replace it by its sha256', table.get("name"), self.path)
        found = dict(map(self._of_table, tables))
        names = [caller.name for caller in found.values()]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled or len(found) < len(tables):
            what = f'the name "{doubled[0]}"' if doubled else "a token"
            raise BadTokens(f"{what} is twice in {self.path}", hint="remove one of the tables")
        return found

    def add(self, name: str, scopes: Sequence[str], per_second: float | None = None) -> str:
        """Add a new token and return it; the file has only its digest. Creates the file if there is none."""
        if not _NAME.fullmatch(name):
            raise BadTokens(f'"{name}" is not a name of a token', hint="use letters, digits and . _ - @")
        caller_with(name, list(scopes), per_second)
        text = self._text() if self.path.exists() else _HEADER
        if any(str(table.get("name")) == name for table in self._tables(text)):
            raise BadTokens(f'there is a token "{name}" in {self.path}', hint=f"potok tokens remove {name}")
        token = secrets.token_urlsafe(32)
        listed = ", ".join(f'"{scope}"' for scope in scopes)
        rate = "" if per_second is None else f"per_second = {float(per_second)!r}\n"
        digest = hashlib.sha256(token.encode()).hexdigest()
        self._replace(
            f'{text.rstrip()}\n\n[[token]]\nname = "{name}"\nscopes = [{listed}]\n{rate}sha256 = "{digest}"\n'
        )
        return token

    def remove(self, name: str) -> None:
        """Remove the table of a token; everything else in the file stays as it is."""
        text = self._text()
        starts = [found.start() for found in _TABLE.finditer(text)]
        parts = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
        kept = [part for part in parts if all(str(table.get("name")) != name for table in self._tables(part))]
        if len(kept) == len(parts):
            names = ", ".join(str(table.get("name")) for table in self._tables(text)) or "none"
            raise BadTokens(f'there is no token "{name}" in {self.path}', hint=f"there are: {names}")
        self._replace("".join([text[: starts[0]], *kept]))

    def _text(self) -> str:
        try:
            return self.path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8"
            raise BadTokens(f"cannot read tokens from {self.path}: {why}", hint="name a file that exists") from error

    def _tables(self, text: str) -> list[Any]:
        try:
            tables = tomllib.loads(text).get("token", [])
        except tomllib.TOMLDecodeError as error:
            hint = "correct the line that it names"
            raise BadTokens(f"{self.path} is not valid TOML: {error}", hint=hint) from error
        if not isinstance(tables, list):
            raise BadTokens(f"there are no tokens in {self.path}", hint='begin each with a line "[[token]]"')
        return tables

    def _of_table(self, table: Any) -> tuple[bytes, Caller]:
        name = str(table.get("name", "")) if isinstance(table, dict) else ""
        if not name:
            raise BadTokens(f"a token in {self.path} has no name", hint='write name = "..." below its [[token]]')
        caller = caller_with(name, table.get("scopes", []), table.get("per_second"))
        if "sha256" not in table:
            return digest_of(str(table.get("token", "")), name), caller
        try:
            digest = bytes.fromhex(str(table["sha256"]))
        except ValueError:
            digest = b""
        if len(digest) != hashlib.sha256().digest_size:
            raise BadTokens(f'the sha256 of token "{name}" is invalid', hint="write its 64 hexadecimal digits")
        return digest, caller

    def _identity(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _replace(self, text: str) -> None:
        """Replace the file, whose mode is kept; a new one is private."""
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            draft.unlink(missing_ok=True)
            with open(draft, "x", encoding="utf-8", opener=private_opener) as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if self.path.exists():
                draft.chmod(stat.S_IMODE(self.path.stat().st_mode))
            os.replace(draft, self.path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            hint = "name a file in a directory that you may write"
            raise BadTokens(f"cannot write tokens to {self.path}: {error.strerror}", hint=hint) from error


def caller_with(name: str, scopes: Any, per_second: Any = None) -> Caller:
    """Return a caller with these scopes. Raises `BadTokens` if there is none, or an unknown one."""
    given = [str(scope) for scope in scopes] if isinstance(scopes, list) else []
    if not given or not all(map(_SCOPE.fullmatch, given)):
        hint = f"use one or more of: {', '.join(SCOPES)}; with the beginning of names: read:orders-"
        raise BadTokens(f'token "{name}" has no known scopes', hint=hint)
    if per_second is None:
        return Caller(name, frozenset(given))
    if isinstance(per_second, bool) or not isinstance(per_second, int | float) or not 0 < per_second < 1e9:
        raise BadTokens(f'the rate of token "{name}" is not a positive number', hint="write per_second = 50")
    return Caller(name, frozenset(given), float(per_second))


def digest_of(token: str, name: str) -> bytes:
    """Return what is stored of a token."""
    if len(token) < SHORTEST:
        hint = f"use {SHORTEST} characters or more: potok tokens add NAME --scope SCOPE makes one"
        raise BadTokens(f'token "{name}" is too short to be secret', hint=hint)
    return hashlib.sha256(token.encode()).digest()
