"""Where the state of queries is stored, given by URL: a directory, Redis, PostgreSQL, Cassandra or object storage."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from potok.errors import StateError
from potok.extras import need_extra
from potok.redact import Url, redact_url, remember, split_url

PASSWORD = "POTOK_STATE_PASSWORD"
"""The environment variable that holds the password if the URL has none. URLs that a query stores for its readers
never have one."""

FILE, REDIS, POSTGRES, CASSANDRA, OBJECTS = "file", "redis", "postgresql", "cassandra", "objects"

SHARED_DIRECTORY = "object+file"
"""The scheme of object storage in a directory; `file:` is a directory with LMDB."""

_BUCKETS = ("s3", "gs", "az")

# Stored URLs have no password; a process that was given a URL with one can still open the stored URL.
_full_urls: dict[str, str] = {}

_EXTRAS = {
    REDIS: ("Redis", "redis"),
    POSTGRES: ("PostgreSQL", "postgres"),
    CASSANDRA: ("Cassandra", "cassandra"),
    OBJECTS: ("object storage", "object-store"),
}

_KINDS = {
    "file": FILE,
    "redis": REDIS,
    "rediss": REDIS,
    "postgresql": POSTGRES,
    "postgres": POSTGRES,
    "cassandra": CASSANDRA,
    SHARED_DIRECTORY: OBJECTS,
    **dict.fromkeys(_BUCKETS, OBJECTS),
}
_REFUSED = {
    "hdfs": "HDFS has no conditional writes, which keep a replaced driver from overwriting state: mount it and use "
    "object+file:///mnt/hdfs/directory, or use its S3 gateway with s3://bucket/prefix?endpoint=...",
}


class UnknownStore(StateError):
    """A URL with an unknown scheme."""

    def __init__(self, url: str, why: str = "") -> None:
        super().__init__(
            f'state cannot be stored at "{url}"',
            hint=why
            or "use a directory (file:./data), redis://host:6379/0, postgresql://user@host/database, "
            "cassandra://user@host/keyspace, a bucket (s3://bucket/prefix, gs://, az://) or object+file:///shared/directory",
        )


class UnclearUrl(StateError):
    """An ambiguous or malformed URL, for example with an unescaped `/` in its password."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f'"{redact_url(url)}" is not a valid URL',
            hint="in a URL, write / ? # @ & and % of user, password and options as %2F %3F %23 %40 %26 %25; "
            f"or leave the password out, and set {PASSWORD} to it, unescaped",
        )


class StoreUnreachable(StateError):
    """A server that did not respond within the time limit."""

    passing = True

    def __init__(self, location: str, cause: str) -> None:
        super().__init__(
            f"the state at {location} cannot be reached: {cause}",
            hint=f"check that the server is running and that the URL is correct; the password may be set in {PASSWORD}",
        )


class StoreNotWritable(StateError):
    """A server that answers, but accepts no writes for the time being."""

    passing = True

    def __init__(self, location: str, cause: str, hint: str) -> None:
        super().__init__(f"the state at {location} cannot be written: {cause}", hint=hint)


class StoreNotReady(StateError):
    """A server that answers, but carries out no commands for the time being."""

    passing = True

    def __init__(self, location: str, cause: str, hint: str) -> None:
        super().__init__(f"the state at {location} cannot be used for the time being: {cause}", hint=hint)


@dataclass(frozen=True, slots=True)
class Where:
    """A state location. `url` may hold a password and is never shown; `str()` omits it."""

    kind: str
    url: str

    @classmethod
    def of(cls, location: str | Path) -> Where:
        if isinstance(location, Path):
            return cls(FILE, str(location.resolve()))
        scheme, colon, rest = location.partition(":")
        if not colon or "/" in scheme:
            return cls(FILE, str(Path(location).expanduser().resolve()))
        kind = _KINDS.get(scheme)
        if kind is None or not rest:
            raise UnknownStore(redact_url(location), _REFUSED.get(scheme, ""))
        if kind == FILE:
            path = "/" + rest.lstrip("/") if rest.startswith("///") else rest
            return cls(FILE, str(Path(path).expanduser().resolve()))
        parts = split_url(location)
        if parts is None:
            raise UnclearUrl(location)
        if kind == OBJECTS:
            parts = _object_location(parts)
        remember(*parts.secrets)
        url = str(parts)
        if url != parts.public:
            _full_urls[parts.public] = url
        return cls(kind, url)

    @property
    def parts(self) -> Url:
        parts = split_url(self.url)
        assert parts is not None
        return parts

    @property
    def directory(self) -> Path:
        assert self.kind == FILE
        return Path(self.url)

    @property
    def shared_directory(self) -> Path | None:
        """The directory that holds the objects; None for a bucket."""
        is_directory = self.kind == OBJECTS and self.parts.scheme == SHARED_DIRECTORY
        return Path(unquote(self.parts.path)) if is_directory else None

    def need_driver(self) -> None:
        """Raise `ExtraMissing` if the driver for this server is not installed."""
        if self.kind in _EXTRAS and self.shared_directory is None:
            need_extra(*_EXTRAS[self.kind])

    def with_password(self) -> Where:
        """Return the same location with a password if the URL has none: the one this process was given, or that of
        the environment."""
        if self.kind in (FILE, OBJECTS):
            return self
        if self.url in _full_urls:
            return Where(self.kind, _full_urls[self.url])
        parts, password = self.parts, os.environ.get(PASSWORD)
        if password and not parts.password:
            parts = parts._replace(user=parts.user or "", password=password)
        remember(*parts.secrets)
        return Where(self.kind, str(parts))

    def __str__(self) -> str:
        return f"file:{self.url}" if self.kind == FILE else self.parts.public

    __repr__ = __str__


def _object_location(parts: Url) -> Url:
    """Return the URL of a location for objects in one spelling: two spellings would be two locations."""
    path = "/".join(filter(None, parts.path.split("/")))
    if parts.scheme == SHARED_DIRECTORY:
        if parts.hosts or not path or parts.options:
            raise UnknownStore(parts.public, "name a directory by its absolute path: object+file:///shared/directory")
    elif not parts.hosts or parts.password is not None:
        raise UnknownStore(
            f"{parts.scheme}://{parts.hosts}{parts.path}",
            f"name a bucket, {parts.scheme}://bucket/prefix; credentials come from the environment of each machine",
        )
    return parts._replace(path=f"/{path}" if path else "")
