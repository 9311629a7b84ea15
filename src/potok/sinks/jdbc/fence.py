"""The last batch of each sink, in a table next to its rows: written in the same transaction."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from potok.sinks.errors import SinkAhead, SinkTaken
from potok.sinks.jdbc.statements import FENCES
from potok.sinks.sink_spec import Batch, Failures, Opening
from potok.sinks.spark_access import JdbcConnection, JdbcError

_THIS = "query_name = ? AND step_name = ?"


@dataclass(frozen=True, slots=True)
class JdbcFence:
    """The last written batch, the digest of its rows, and the rejected rows."""

    epoch: int
    batch: int
    digest: str = ""
    refused: Failures = field(default_factory=dict)


class JdbcFences:
    """The fence row of one sink."""

    def __init__(self, opening: Opening, label: str) -> None:
        self._opening, self._label = opening, label
        self._key = (opening.query, opening.step)

    def take_over(self, connection: JdbcConnection, create: str) -> None:
        """Fence earlier epochs of the query, and check that the sink is not ahead of it."""
        query = f"SELECT epoch, batch FROM {FENCES} WHERE {_THIS}"
        try:
            found = connection.rows(query, *self._key)
        except JdbcError as error:
            connection.rollback()
            if error.transient:
                raise
            connection.run(create)
            connection.commit()
            found = []
        opening = self._opening
        if found:
            # Lock the row in a transaction of its own, and read it again: another process may be changing the epoch.
            connection.commit()
            connection.run(f"UPDATE {FENCES} SET epoch = epoch WHERE {_THIS}", *self._key)
            found = connection.rows(query, *self._key)
        if not found:
            values = (*self._key, opening.epoch, opening.committed, "", "{}")
            connection.run(f"INSERT INTO {FENCES} VALUES (?, ?, ?, ?, ?, ?)", *values)
            connection.commit()
            return
        epoch, batch = (int(each) for each in found[0])
        name, step = (text.replace("'", "''") for text in self._key)
        delete = f"DELETE FROM {FENCES} WHERE query_name = '{name}' AND step_name = '{step}'"
        if batch > opening.committed + 1:
            remedy = f"empty the table, or choose another, and then: {delete}"
            raise SinkAhead(opening.step, self._label, batch, opening.committed, remedy)
        if epoch > opening.epoch:
            owner = f'a later start of query "{opening.query}"'
            remedy = f"stop one of the two; if the query was started over, empty the table, and then: {delete}"
            raise SinkTaken(opening.step, self._label, owner, remedy)
        connection.run(f"UPDATE {FENCES} SET epoch = ? WHERE {_THIS}", opening.epoch, *self._key)
        connection.commit()

    def locked(self, connection: JdbcConnection, batch: Batch) -> JdbcFence:
        """Return the fence, locked until the transaction ends: an update locks in every database, a SELECT does not."""
        connection.run(f"UPDATE {FENCES} SET epoch = epoch WHERE {_THIS}", *self._key)
        found = connection.rows(f"SELECT epoch, batch, digest, refused FROM {FENCES} WHERE {_THIS}", *self._key)
        if not found:
            raise SinkTaken(self._opening.step, self._label, "somebody who deleted its fence", "start the query again")
        epoch, number, digest, refused = found[0]
        if int(epoch) > batch.epoch or int(number) > batch.number:
            owner = f'a later start of query "{self._opening.query}"'
            raise SinkTaken(self._opening.step, self._label, owner, "stop one of the two")
        failures = {int(row): text for row, text in json.loads(refused or "{}").items()}
        return JdbcFence(int(epoch), int(number), digest or "", failures)

    def move(self, connection: JdbcConnection, fence: JdbcFence) -> None:
        statement = f"UPDATE {FENCES} SET epoch = ?, batch = ?, digest = ?, refused = ? WHERE {_THIS}"
        connection.run(statement, fence.epoch, fence.batch, fence.digest, json.dumps(fence.refused), *self._key)
