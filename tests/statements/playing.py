"""A catalog whose queries run in the process of the test, batch by batch, when the test says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from operators.core.in_process import InProcess
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.settings import Settings
from potok.statements.database import Database
from potok.statements.results import Push, Result
from potok.statements.session import SqlSession


class Play:
    """Statements, and the queries that they begin."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.broker = EmbeddedBroker.shared(directory)
        self.database = Database(self.broker, Settings(broker=f"file:{directory}", shards=2), runs=False)
        self.session = SqlSession(self.database)
        self._drivers: dict[str, InProcess] = {}

    def do(self, text: str) -> Result:
        """The result of the last statement of a script."""
        return self.session.execute(text)[-1].result

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        result = self.do(text)
        assert not isinstance(result, Push)
        return list(result.rows)  # type: ignore[union-attr]

    def run(self) -> None:
        """Let all queries take in what is there."""
        for query_id, wanted in self.database.catalog_state().queries.items():
            if query_id not in self._drivers:
                self._drivers[query_id] = InProcess(wanted.topology, directory=self._directory)
            self._drivers[query_id].run(more_to_come=True)

    def leave(self, prefix: str) -> None:
        """Let go of the queries whose names begin so: one that somebody runs cannot be dropped."""
        for query_id in [name for name in self._drivers if name.startswith(prefix)]:
            self._drivers.pop(query_id).leave()

    def close(self) -> None:
        for driver in self._drivers.values():
            driver.leave()
        self.database.close()
        self.broker.close()
