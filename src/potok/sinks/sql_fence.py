"""The last batch of each sink of a database, in a table next to its rows: written in the same transaction."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from potok.sinks.errors import SinkAhead, SinkTaken
from potok.sinks.sink_spec import Batch, Failures, Opening

C = TypeVar("C")
"""A connection, in a transaction."""


@dataclass(frozen=True, slots=True)
class SqlFence:
    """The last written batch, the digest of its rows, and the rejected rows."""

    epoch: int
    batch: int
    digest: str = ""
    refused: Failures = field(default_factory=dict)


class SqlFences(ABC, Generic[C]):
    """The fence row of one sink. Statements have a question mark for each value."""

    table: ClassVar[str]
    key: ClassVar[tuple[str, str]]
    """The columns of the query and of the step."""

    def __init__(self, opening: Opening, label: str) -> None:
        self._opening, self._label = opening, label
        self._this = f"{self.key[0]} = ? AND {self.key[1]} = ?"

    @abstractmethod
    def ensure(self, connection: C, first: Sequence[object]) -> None:
        """Create the table and the row, with these values, unless they exist."""

    @abstractmethod
    def lock(self, connection: C, query: str, *key: object) -> Sequence[Any] | None:
        """Return the row of a query, locked until the transaction ends; None if it does not exist."""

    @abstractmethod
    def change(self, connection: C, statement: str, *values: object) -> None:
        """Run a statement in the transaction."""

    def take_over(self, connection: C) -> None:
        """Fence earlier epochs of the query, and check that the sink is not ahead of it."""
        opening = self._opening
        self.ensure(connection, (opening.query, opening.step, opening.epoch, opening.committed, "", "{}"))
        fence = self._read(connection)
        query, step = (text.replace("'", "''") for text in (opening.query, opening.step))
        delete = f"DELETE FROM {self.table} WHERE {self.key[0]} = '{query}' AND {self.key[1]} = '{step}'"
        if fence.batch > opening.committed + 1:
            remedy = f"empty the table, or choose another, and then: {delete}"
            raise SinkAhead(opening.step, self._label, fence.batch, opening.committed, remedy)
        if fence.epoch > opening.epoch:
            remedy = f"stop one of the two; if the query was started over, empty the table, and then: {delete}"
            raise self._taken(remedy)
        self.change(
            connection,
            f"UPDATE {self.table} SET epoch = ? WHERE {self._this}",
            opening.epoch,
            opening.query,
            opening.step,
        )

    def locked(self, connection: C, batch: Batch) -> SqlFence:
        """Return the fence, locked until the transaction ends."""
        fence = self._read(connection)
        if fence.epoch > batch.epoch or fence.batch > batch.number:
            raise self._taken("stop one of the two")
        return fence

    def move(self, connection: C, fence: SqlFence) -> None:
        statement = f"UPDATE {self.table} SET epoch = ?, batch = ?, digest = ?, refused = ? WHERE {self._this}"
        values = (fence.epoch, fence.batch, fence.digest, json.dumps(fence.refused))
        self.change(connection, statement, *values, self._opening.query, self._opening.step)

    def _read(self, connection: C) -> SqlFence:
        query = f"SELECT epoch, batch, digest, refused FROM {self.table} WHERE {self._this}"
        found = self.lock(connection, query, self._opening.query, self._opening.step)
        if found is None:
            owner = "another process that deleted its fence"
            raise SinkTaken(self._opening.step, self._label, owner, "start the query again")
        epoch, batch, digest, refused = found
        rows = refused if isinstance(refused, dict) else json.loads(refused or "{}")
        return SqlFence(int(epoch), int(batch), digest or "", {int(row): text for row, text in rows.items()})

    def _taken(self, remedy: str) -> SinkTaken:
        owner = f'a later start of query "{self._opening.query}"'
        return SinkTaken(self._opening.step, self._label, owner, remedy)
