"""Query metadata in Cassandra: one partition, changed by lightweight transactions alone."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from potok.backends.cassandra.connection import Call, connect
from potok.backends.cassandra.tables import make_tables
from potok.backends.state_url import StoreNotReady, Where
from potok.metadata.metadata_store import MetadataConflict, MetadataStore

SPACE = "metadata"
"""The partition: only the rows of one partition change together."""

FORGOTTEN_S = 24 * 3600
"""How long the last writer of a deleted key is remembered."""

MOST_NAMES = 200
"""The most keys of one read."""

TRIES = 50
"""How often a change is sent again because the values it expects are there, but it was not made."""

_GET = "SELECT name, value, writer FROM potok_metadata WHERE space = ? AND name IN ?"
_LIST = "SELECT name, value FROM potok_metadata WHERE space = ? AND name >= ?"
_PROBE = "SELECT name FROM potok_metadata WHERE space = ? LIMIT 1"

# A change that was made, and is sent again because its response was lost, finds itself as the writer.
_SET = "UPDATE potok_metadata USING TTL ? SET value = ?, writer = ? WHERE space = ? AND name = ? IF writer != ?"
_SET_EXPECTED = f"{_SET} AND value = ?"
_EXPECT = "UPDATE potok_metadata SET unused = null WHERE space = ? AND name = ? IF value = ?"


class CassandraMetadata(MetadataStore):
    def __init__(self, where: Where) -> None:
        self._where, self._connection = where, connect(where)
        self._connection.run(self._open)

    def _open(self) -> None:
        make_tables(self._connection)
        # A process that died in the middle of a change may have left it undecided. A serial read decides it; other
        # reads then need not be serial, and do not compete with changes.
        self._connection.execute_serially(_PROBE, (SPACE,))

    def __reduce__(self) -> tuple[object, ...]:
        return CassandraMetadata, (self._where,)

    def get_metadata(self, name: str) -> bytes | None:
        return self.get_metadata_of((name,))[0]

    def get_metadata_of(self, names: Sequence[str]) -> tuple[bytes | None, ...]:
        def work() -> dict[str, bytes | None]:
            return {name: value for name, value, _ in self._rows(names)}

        found = self._connection.run(work)
        return tuple(found.get(name) for name in names)

    def list_metadata(self, prefix: str) -> dict[str, bytes]:
        def work() -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for name, value in self._connection.execute(_LIST, (SPACE, prefix)):
                if not name.startswith(prefix):
                    break
                if value is not None:
                    found[name] = value
            return found

        return self._connection.run(work)

    def set_metadata(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None:
        writer = secrets.token_bytes(16)
        self._connection.run(lambda: self._set(updates, expect, writer))

    def _set(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None], writer: bytes) -> None:
        names = sorted({*updates, *expect})
        if not names:
            return
        for _ in range(TRIES):
            calls = [self._call(name, updates, expect, writer) for name in names]
            (applied, *_), *_ = self._connection.session.execute(self._connection.batch(calls))
            if applied:
                return
            found = {name: (value, last) for name, value, last in self._rows(names, serial=True)}
            if any(found.get(name, (None, None))[1] == writer for name in updates):
                return
            for name, value in expect.items():
                if found.get(name, (None, None))[0] != value:
                    raise MetadataConflict(name)
        hint = "many processes change the metadata; the change is repeated"
        raise StoreNotReady(str(self._where), "the metadata is contended", hint)

    def _call(
        self, name: str, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None], writer: bytes
    ) -> Call:
        prepared = self._connection.prepared
        if name not in updates:
            return prepared(_EXPECT), (SPACE, name, expect[name])
        value = updates[name]
        values: list[object] = [FORGOTTEN_S if value is None else 0, value, writer, SPACE, name, writer]
        return (prepared(_SET_EXPECTED), [*values, expect[name]]) if name in expect else (prepared(_SET), values)

    def _rows(self, names: Sequence[str], *, serial: bool = False) -> list[Any]:
        read = self._connection.execute_serially if serial else self._connection.execute
        parts = [names[first : first + MOST_NAMES] for first in range(0, len(names), MOST_NAMES)]
        return [row for part in parts for row in read(_GET, (SPACE, list(part)))]

    def close(self) -> None:
        """Do nothing: the connections belong to the process, which closes them at exit."""
