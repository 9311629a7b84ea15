"""The sagas of the queries of a program, or of all queries of a log."""

from __future__ import annotations

from potok.snapshots.patterns.saga_instances import SagaOf, sagas_of
from potok.snapshots.tables import known_queries
from potok.state.entry import metadata_key_of
from potok.statements.database import Database
from potok.statements.queries.query_tables import QueryTables


class KnownSagas:
    """Finds the sagas again only if a query has been replaced."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen: tuple[bytes | None, ...] = ()
        self._found: list[SagaOf] = []

    def known(self) -> list[SagaOf]:
        broker = self._database.broker
        queries = self._database.query_names if isinstance(self._database, QueryTables) else known_queries(broker)
        seen = tuple(broker.get_metadata_of([metadata_key_of(query, "description") for query in queries]))
        if seen != self._seen:
            self._found, self._seen = sagas_of(broker, queries), seen
        return self._found
