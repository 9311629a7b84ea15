"""Query metadata in object storage: one object for the keys of each query, replaced if nobody else has replaced it.

A change of one object is one conditional write. A change of several, such as promoting a shadow, is a transaction: each
object receives the new values as an intent, one write to the object of the transaction commits them, and then they are
moved in. A reader that finds an intent asks that object whether it counts; a writer that finds one of a process that
died aborts or completes it.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from potok.backends.objects.object_client import CountedClient, ObjectDamaged, Requests
from potok.backends.objects.open import object_client
from potok.backends.state_url import StoreNotReady, Where
from potok.failpoint import failpoint
from potok.metadata.metadata_store import MetadataConflict, MetadataStore

_PREFIX, _TRANSACTIONS = "metadata/keys/", "metadata/transactions/"
_PENDING, _COMMITTED, _ABORTED = "pending", "committed", "aborted"

PATIENCE_S = 5.0
"""How long a writer waits for the transaction of another process before it aborts it."""

_TRIES = 100
_AT_ONCE = 16

Values = Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Page:
    """The content of one object: the keys, who wrote them last, and the intent of a transaction."""

    keys: Mapping[str, bytes] = field(default_factory=dict)
    writer: str = ""
    transaction: str = ""
    intent: Values = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        parts = (_as_text(self.keys), self.writer, self.transaction, _as_text(self.intent))
        return json.dumps(parts).encode()

    @classmethod
    def of_bytes(cls, data: bytes) -> Page:
        keys, writer, transaction, intent = json.loads(data)
        stored = {name: value for name, value in _of_text(keys).items() if value is not None}
        return cls(stored, writer, transaction, _of_text(intent))

    def after(self, updates: Values, writer: str) -> Page:
        """Return the page with changed keys and without an intent."""
        keys = {**self.keys, **updates}
        return Page({name: value for name, value in keys.items() if value is not None}, writer)

    def resolved(self, *, committed: bool) -> Page:
        return self.after(self.intent, self.transaction) if committed else replace(self, transaction="", intent={})


@dataclass(frozen=True, slots=True)
class Found:
    """A page and the version that a replacement expects; None if the object does not exist."""

    page: Page
    version: str | None


class ObjectMetadata(MetadataStore):
    def __init__(self, where: Where) -> None:
        self._where = where
        self._written: dict[str, Found] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return ObjectMetadata, (self._where,)

    @property
    def _client(self) -> CountedClient:
        return CountedClient(object_client(self._where), requests)

    def get_metadata(self, name: str) -> bytes | None:
        return self._settled(_object_of(name)).keys.get(name)

    def get_metadata_of(self, names: Sequence[str]) -> tuple[bytes | None, ...]:
        pages = {key: self._settled(key) for key in {_object_of(name) for name in names}}
        return tuple(pages[_object_of(name)].keys.get(name) for name in names)

    def list_metadata(self, prefix: str) -> dict[str, bytes]:
        listed = [found.name for found in self._client.list(_PREFIX)]
        whole = _object_of(prefix) if prefix.count("/") >= 2 else None
        keys = [key for key in listed if whole is None or key == whole]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            pages = list(threads.map(self._settled, keys))
        found = {name: value for page in pages for name, value in page.keys.items() if name.startswith(prefix)}
        return dict(sorted(found.items()))

    def set_metadata(self, updates: Values, expect: Mapping[str, bytes | None] = {}) -> None:
        keys = sorted({_object_of(name) for name in (*updates, *expect)})
        if len(keys) == 1:
            self._set_one(keys[0], updates, expect)
        elif keys:
            self._set_many(keys, updates, expect)

    def close(self) -> None:
        """Do nothing: the connections belong to the process, which closes them at exit."""

    def _set_one(self, key: str, updates: Values, expect: Values) -> None:
        writer = secrets.token_hex(8)
        found = self._written.get(key) or self._read(key)
        for _ in range(_TRIES):
            if found.page.transaction:
                found = self._settle(key, found)
                continue
            if found.page.writer == writer:
                return
            self._check(found.page, expect, key)
            page = found.page.after(updates, writer)
            if self._put(key, page, found) is not None:
                return
            # Changed by another process, or by this one, whose acknowledgement was lost.
            found = self._read(key)
        raise self._contended(key)

    def _check(self, page: Page, expect: Values, key: str) -> None:
        """Compare with the expected values; what this process wrote last may be out of date."""
        wrong = _differing(page, expect)
        if wrong is not None and key in self._written:
            del self._written[key]
            found = self._read(key)
            page = self._settle(key, found).page if found.page.transaction else found.page
            wrong = _differing(page, expect)
        if wrong is not None:
            raise MetadataConflict(wrong)

    def _put(self, key: str, page: Page, before: Found) -> Found | None:
        """Replace a page; return what is there now, or None if it was changed meanwhile."""
        data = page.to_bytes()
        failpoint("objects.metadata.before")
        if before.version is None:
            version = self._client.create(key, data)
        else:
            version = self._client.replace(key, data, before.version)
        failpoint("objects.metadata.written")
        if version is None:
            self._written.pop(key, None)
            return None
        self._written[key] = Found(page, version)
        return self._written[key]

    def _set_many(self, keys: Sequence[str], updates: Values, expect: Values) -> None:
        """Change several objects in one transaction."""
        for _ in range(_TRIES):
            transaction = _TRANSACTIONS + secrets.token_hex(8)
            created = self._client.create(transaction, _encoded(_PENDING, keys))
            # Nobody else uses this name: if the object exists, an acknowledgement was lost.
            again = self._client.get(transaction) if created is None else None
            pending = created or (again.version if again is not None else "")
            prepared = False
            try:
                for key in keys:
                    self._prepare(key, transaction, _within(updates, key), _within(expect, key))
                prepared = True
            finally:
                if not prepared:
                    self._end(transaction, keys, committed=False)
            failpoint("objects.metadata.prepared")
            committed = _encoded(_COMMITTED, keys)
            self._client.replace(transaction, committed, pending)
            # Read it: an acknowledgement may have been lost, or another process has aborted the transaction.
            state = self._state(transaction)
            failpoint("objects.metadata.committed")
            self._end(transaction, keys, committed=state == _COMMITTED)
            if state == _COMMITTED:
                return
        raise self._contended(keys[0])

    def _prepare(self, key: str, transaction: str, updates: Values, expect: Values) -> None:
        for _ in range(_TRIES):
            found = self._read(key)
            if found.page.transaction == transaction:
                return
            if found.page.transaction:
                found = self._settle(key, found)
                continue
            wrong = _differing(found.page, expect)
            if wrong is not None:
                raise MetadataConflict(wrong)
            self._put(key, replace(found.page, transaction=transaction, intent=updates), found)
        raise self._contended(key)

    def _end(self, transaction: str, keys: Iterable[str], *, committed: bool) -> None:
        """Move the intents of a transaction in, or remove them, and forget it."""
        for key in keys:
            found = self._read(key)
            while found.page.transaction == transaction:
                self._put(key, found.page.resolved(committed=committed), found)
                found = self._read(key)
        self._client.delete([transaction])

    def _settled(self, key: str) -> Page:
        """Read a page with the values that count."""
        page = self._read(key).page
        while page.transaction:
            state = self._state(page.transaction)
            if state is not None:
                return page.resolved(committed=state == _COMMITTED)
            # Ended meanwhile. An intent that is still there was written by a process that had been given up.
            again = self._read(key).page
            if again.transaction == page.transaction:
                return page.resolved(committed=False)
            page = again
        return page

    def _settle(self, key: str, found: Found) -> Found:
        """Complete the transaction that a page is part of, or abort it if its process does not end it in time."""
        transaction = found.page.transaction
        end = time.monotonic() + PATIENCE_S
        while found.page.transaction == transaction:
            stored = self._client.get(transaction)
            state, keys = (None, [key]) if stored is None else json.loads(stored.data)
            if state == _PENDING and stored is not None:
                if time.monotonic() < end:
                    time.sleep(0.05)
                else:
                    self._client.replace(transaction, _encoded(_ABORTED, keys), stored.version)
            elif state is not None:
                self._end(transaction, keys, committed=state == _COMMITTED)
            elif self._read(key).page.transaction == transaction:
                self._put(key, found.page.resolved(committed=False), found)
            found = self._read(key)
        return found

    def _state(self, transaction: str) -> str | None:
        stored = self._client.get(transaction)
        return None if stored is None else str(json.loads(stored.data)[0])

    def _read(self, key: str) -> Found:
        stored = self._client.get(key)
        if stored is None:
            return Found(Page(), None)
        try:
            return Found(Page.of_bytes(stored.data), stored.version)
        except (ValueError, TypeError, AttributeError) as error:
            hint = "restore this object from a backup of the bucket; its queries cannot run without their ledgers"
            raise ObjectDamaged(str(self._where), key, str(error), hint) from error

    def _contended(self, key: str) -> StoreNotReady:
        hint = "the change is repeated; give queries that commit often a state URL of their own"
        return StoreNotReady(str(self._where), f"object {key} is changed by too many processes at a time", hint)


requests = Requests()
"""The requests for metadata of this process."""


def _object_of(name: str) -> str:
    """Return the object that holds a key: `query/orders/ledger` is in that of `query/orders`."""
    return _PREFIX + quote("/".join(name.split("/")[:2]) if name.count("/") >= 2 else name, safe="@.")


def _within(values: Values, key: str) -> Values:
    return {name: value for name, value in values.items() if _object_of(name) == key}


def _differing(page: Page, expect: Values) -> str | None:
    """Return a key that does not have the expected value."""
    return next((name for name, value in expect.items() if page.keys.get(name) != value), None)


def _encoded(state: str, keys: Sequence[str]) -> bytes:
    """Encode the state of a transaction, and the objects it changes."""
    return json.dumps((state, list(keys))).encode()


def _as_text(values: Values) -> dict[str, str | None]:
    return {name: None if value is None else base64.b64encode(value).decode() for name, value in values.items()}


def _of_text(values: Mapping[str, str | None]) -> dict[str, bytes | None]:
    return {name: None if text is None else base64.b64decode(text) for name, text in values.items()}
