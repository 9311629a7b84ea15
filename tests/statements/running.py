"""A catalog whose queries are members of a shared query that the test drives by hand; only Spark is not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings
from potok.sources.sql_connectors import SqlConnectors
from potok.statements.database import Database
from potok.statements.results import Done, Rows
from potok.statements.session import SqlSession
from runtime.queries.by_hand import ByHand


class Running(Database):
    """Runs its queries, or leaves that to another one over the same directory."""

    def __init__(
        self, directory: Path, *, runs: bool = True, broker: Broker | None = None, connects: bool = False
    ) -> None:
        self._directory = directory
        self.started: list[ByHand] = []
        log = broker or EmbeddedBroker.shared(directory)
        connectors = SqlConnectors(log) if connects else None
        super().__init__(log, Settings(broker=log.url, shards=2), runs=runs, connectors=connectors)
        self.session = SqlSession(self)

    def _shared_query(self) -> QueryGroup:
        self.started.append(ByHand(self._directory, "sql", broker=self.broker))
        return self.started[-1]

    def _supervise(self) -> None:
        """The test calls `tend`."""

    def do(self, text: str) -> Done:
        result = self.session.execute(text)[-1].result
        assert isinstance(result, Done)
        return result

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        result = self.session.execute(text)[-1].result
        assert isinstance(result, Rows)
        return sorted(result.rows)

    def run(self) -> None:
        """Let the queries take in what is there."""
        self.started[-1].settle()

    def states(self) -> dict[str, str]:
        return {query.query_id: query.state for query in self.queries()}

    def kill(self) -> None:
        """Let go of the locks, as the end of a process does, and close nothing."""
        for shared in self.started:
            shared.kill()


Opener = Callable[..., Running]
