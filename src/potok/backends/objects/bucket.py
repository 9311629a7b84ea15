"""A bucket of S3, Google Cloud Storage or Azure through obstore."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store

from potok.backends.objects.object_client import Listed, ObjectClient, Stored
from potok.backends.state_url import StoreUnreachable, UnknownStore
from potok.errors import StateError
from potok.redact import Url, redact, safe_cause
from potok.retry_policy import BRIEFLY_MS, FIRST_S, GIVE_UP_MS, MOST_S, is_brief

TIMEOUT_S = 60
"""Time limit of one request."""

CONNECT_S = 5

OPTIONS = {
    "s3": ("endpoint", "region", "virtual_hosted_style_request", "skip_signature", "sse_kms_key_id"),
    "gs": ("endpoint",),
    "az": ("account_name", "endpoint", "use_emulator"),
}
"""The options that a URL may have, by scheme. Credentials come from the environment of each machine."""

_AT_ONCE = 1_000


class BucketClient(ObjectClient):
    """Objects below a prefix of a bucket. The client retries answers 5xx and lost connections itself."""

    def __init__(self, location: str, url: Url) -> None:
        self.location = location
        self._url = url
        self._store, self._brief_store = _store(url, GIVE_UP_MS), _store(url, BRIEFLY_MS)

    @property
    def _current(self) -> Any:
        return self._brief_store if is_brief() else self._store

    def get(self, name: str) -> Stored | None:
        with self._naming():
            try:
                found = obstore.get(self._current, name)
                return Stored(bytes(found.bytes()), _version(found.meta))
            except FileNotFoundError:
                return None

    def create(self, name: str, data: bytes) -> str | None:
        with self._naming():
            try:
                return _version(obstore.put(self._current, name, data, mode="create"))
            except exceptions.AlreadyExistsError:
                return None

    def replace(self, name: str, data: bytes, version: str) -> str | None:
        with self._naming():
            try:
                return _version(obstore.put(self._current, name, data, mode=json.loads(version)))
            except (exceptions.PreconditionError, FileNotFoundError):
                return None

    def list(self, prefix: str) -> list[Listed]:
        with self._naming():
            return sorted(
                Listed(meta["path"], meta["size"], int(meta["last_modified"].timestamp() * 1_000))
                for page in obstore.list(self._current, prefix.rstrip("/"), chunk_size=_AT_ONCE)
                for meta in page
            )

    def delete(self, names: Sequence[str]) -> None:
        with self._naming():
            for first in range(0, len(names), _AT_ONCE):
                try:
                    obstore.delete(self._current, list(names[first : first + _AT_ONCE]))
                except FileNotFoundError:
                    continue

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Convert errors of the client into errors of Potok."""
        try:
            yield
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise StateError(
                f"the objects in {self.location} cannot be used: access was denied ({_first_line(error)})",
                hint="set the credentials in the environment of every machine, and allow them to read, write, list "
                "and delete objects below this prefix",
            ) from safe_cause(error)
        except (exceptions.BaseError, OSError) as error:
            cause = _first_line(error)
            if "NoSuchBucket" in str(error):
                hint = "create the bucket, or correct its name"
                raise StateError(f"there is no bucket for {self.location}", hint=hint) from safe_cause(error)
            raise StoreUnreachable(self.location, cause) from safe_cause(error)


def _store(url: Url, for_ms: int) -> Any:
    known = OPTIONS[url.scheme]
    options = dict(url.options)
    wrong = sorted(options.keys() - set(known))
    if wrong or url.user is not None:
        what = f'the option "{wrong[0]}"' if wrong else "a user"
        raise UnknownStore(str(url.public), f"{what} cannot be part of this URL; options: {', '.join(known)}")
    retries = {
        "max_retries": 10,
        "retry_timeout": timedelta(milliseconds=for_ms),
        "backoff": {"init_backoff": timedelta(seconds=FIRST_S), "max_backoff": timedelta(seconds=MOST_S), "base": 2},
    }
    client = {
        "timeout": timedelta(seconds=TIMEOUT_S if for_ms == GIVE_UP_MS else for_ms / 1000),
        "connect_timeout": timedelta(seconds=CONNECT_S if for_ms == GIVE_UP_MS else for_ms / 1000),
        "allow_http": options.get("endpoint", "").startswith("http://"),
    }
    prefix = url.path.strip("/") or None
    given: dict[str, Any] = {"prefix": prefix, "client_options": client, "retry_config": retries, **options}
    stores: dict[str, Any] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
    try:
        return stores[url.scheme](url.hosts, **given)
    except (exceptions.BaseError, ValueError, TypeError) as error:
        cause = _first_line(error)
        raise StateError(
            f"the bucket {url.public} cannot be used: {cause}",
            hint="complete the URL or the environment of the process: region, account and credentials",
        ) from safe_cause(error)


def _version(meta: Any) -> str:
    """Encode what a conditional replacement expects: an ETag or, on Google Cloud Storage, a generation."""
    return json.dumps({name: meta[name] for name in ("e_tag", "version") if meta.get(name)})


def _first_line(error: BaseException) -> str:
    """Shorten an error of the client, which quotes its source code and the whole response."""
    return redact(str(error).split("\n", 1)[0])[:300]
