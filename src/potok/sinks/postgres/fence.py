"""The last batch of each sink, in a table next to its rows: written in the same transaction."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import psycopg

from potok.sinks.errors import SinkAhead, SinkTaken
from potok.sinks.sink_spec import Batch, Failures, Opening

Connection = psycopg.Connection[tuple[Any, ...]]

_CREATE = """
CREATE TABLE IF NOT EXISTS potok_fences (
    query text, step text, epoch bigint NOT NULL, batch bigint NOT NULL, digest text NOT NULL, refused jsonb NOT NULL,
    PRIMARY KEY (query, step)
)"""


@dataclass(frozen=True, slots=True)
class Fence:
    """The last written batch, the digest of its rows, and the rejected rows."""

    epoch: int
    batch: int
    digest: str = ""
    refused: Failures = field(default_factory=dict)


class Fences:
    """The fence row of one sink."""

    def __init__(self, opening: Opening, label: str) -> None:
        self._opening, self._label = opening, label
        self._fence_key = (opening.query, opening.step)

    def take_over(self, connection: Connection) -> None:
        """Fence earlier epochs of the query, and check that the sink is not ahead of it."""
        if connection.execute("SELECT to_regclass('potok_fences')").fetchone() == (None,):
            connection.execute(_CREATE)
        opening = self._opening
        connection.execute(
            "INSERT INTO potok_fences VALUES (%s, %s, %s, %s, '', '{}') ON CONFLICT DO NOTHING",
            (*self._fence_key, opening.epoch, opening.committed),
        )
        fence = self._read(connection)
        query, step = (name.replace("'", "''") for name in self._fence_key)
        delete = f"DELETE FROM potok_fences WHERE query = '{query}' AND step = '{step}'"
        if fence.batch > opening.committed + 1:
            remedy = f"empty the table, or choose another, and then: {delete}"
            raise SinkAhead(opening.step, self._label, fence.batch, opening.committed, remedy)
        if fence.epoch > opening.epoch:
            owner = f'a later start of query "{opening.query}"'
            remedy = f"stop one of the two; if the query was started over, empty the table, and then: {delete}"
            raise SinkTaken(opening.step, self._label, owner, remedy)
        connection.execute(
            "UPDATE potok_fences SET epoch = %s WHERE query = %s AND step = %s", (opening.epoch, *self._fence_key)
        )

    def locked(self, connection: Connection, batch: Batch) -> Fence:
        """Return the fence, locked until the transaction ends."""
        fence = self._read(connection)
        if fence.epoch > batch.epoch or fence.batch > batch.number:
            owner = f'a later start of query "{self._opening.query}"'
            raise SinkTaken(self._opening.step, self._label, owner, "stop one of the two")
        return fence

    def move(self, connection: Connection, fence: Fence) -> None:
        connection.execute(
            "UPDATE potok_fences SET epoch = %s, batch = %s, digest = %s, refused = %s WHERE query = %s AND step = %s",
            (fence.epoch, fence.batch, fence.digest, json.dumps(fence.refused), *self._fence_key),
        )

    def _read(self, connection: Connection) -> Fence:
        found = connection.execute(
            "SELECT epoch, batch, digest, refused FROM potok_fences WHERE query = %s AND step = %s FOR UPDATE",
            self._fence_key,
        ).fetchone()
        if found is None:
            raise SinkTaken(
                self._opening.step, self._label, "another process that deleted its fence", "start the query again"
            )
        epoch, batch, digest, refused = found
        return Fence(epoch, batch, digest, {int(row): text for row, text in refused.items()})
