"""Where the state of queries lives: a directory, a Redis or a PostgreSQL server, by URL."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from potok.errors import StateError

PASSWORD = "POTOK_STATE_PASSWORD"
"""The variable of the environment that holds the password where the URL has none: what a query writes down for its
readers never has one."""

FILE, REDIS, POSTGRES = "file", "redis", "postgresql"

# What a query writes down has no password; but whoever was told a URL with one in this process need not say it again.
_told: dict[str, str] = {}

_DRIVERS = {REDIS: ("Redis", "redis", "redis"), POSTGRES: ("PostgreSQL", "psycopg", "postgres")}

_KINDS = {"file": FILE, "redis": REDIS, "rediss": REDIS, "postgresql": POSTGRES, "postgres": POSTGRES}


class UnknownStore(StateError):
    """A URL that names no kind of store."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f'state cannot be kept at "{url}"',
            hint="use a directory (file:./data), redis://host:6379/0 or postgresql://user@host/database",
        )


class DriverMissing(StateError):
    """A store whose Python driver is not installed."""

    def __init__(self, kind: str, package: str, extra: str) -> None:
        super().__init__(
            f"{kind} needs the package {package}, which is not installed", hint=f'pip install "potok[{extra}]"'
        )


class StoreUnreachable(StateError):
    """A server that does not answer, also after some time."""

    def __init__(self, place: str, cause: str) -> None:
        super().__init__(
            f"the state at {place} cannot be reached: {cause}",
            hint=f"check that the server runs and that the URL is right; a password may stand in {PASSWORD}",
        )


@dataclass(frozen=True, slots=True)
class Where:
    """`url` may hold a password and is never shown; `str()` of it never does."""

    kind: str
    url: str

    @classmethod
    def of(cls, place: str | Path) -> Where:
        if isinstance(place, Path):
            return cls(FILE, str(place.resolve()))
        scheme, colon, rest = place.partition(":")
        if not colon or "/" in scheme:
            return cls(FILE, str(Path(place).expanduser().resolve()))
        kind = _KINDS.get(scheme)
        if kind is None or not rest:
            raise UnknownStore(shown(place))
        if kind == FILE:
            path = "/" + rest.lstrip("/") if rest.startswith("///") else rest
            return cls(FILE, str(Path(path).expanduser().resolve()))
        if place != shown(place):
            _told[shown(place)] = place
        return cls(kind, place)

    @property
    def directory(self) -> Path:
        assert self.kind == FILE
        return Path(self.url)

    def need_driver(self) -> None:
        """Raise `DriverMissing` where Python cannot talk to such a server."""
        if self.kind in _DRIVERS and find_spec(_DRIVERS[self.kind][1]) is None:
            raise DriverMissing(*_DRIVERS[self.kind])

    def with_password(self) -> Where:
        """The same with a password, where the URL has none itself: the one that this process was told with it, or that
        of the environment."""
        if self.url in _told:
            return Where(self.kind, _told[self.url])
        parts, password = urlsplit(self.url), os.environ.get(PASSWORD)
        if self.kind == FILE or parts.password or not password:
            return self
        user, _, host = parts.netloc.rpartition("@")
        return Where(self.kind, urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}")))

    def __str__(self) -> str:
        return f"file:{self.url}" if self.kind == FILE else shown(self.url)

    __repr__ = __str__


def shown(url: str) -> str:
    """A URL without its password, be it before the host or among the options."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    kept = [option for option in parts.query.split("&") if unquote(option.split("=")[0]).lower() != "password"]
    return urlunsplit(parts._replace(netloc=f"{name}@{host}" if name else host, query="&".join(kept)))
