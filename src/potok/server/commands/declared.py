"""The aggregates that the queries of a server have, with their commands."""

from __future__ import annotations

from collections.abc import Mapping

from potok.patterns.aggregates.describe import AggregateDescription, CommandDescription
from potok.patterns.aggregates.messages import results_topic
from potok.server.errors import NotThere
from potok.snapshots.patterns.declared_aggregates import aggregates_in
from potok.sql.errors import closest
from potok.state.entry import metadata_key_of
from potok.statements.database import Database
from potok.statements.queries.query_tables import QueryTables


class DeclaredAggregates:
    """Reads what the queries have stored when they started; decoded again only after they have changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: tuple[dict[str, bytes | None], dict[str, AggregateDescription]] = ({}, {})

    def all(self) -> Mapping[str, AggregateDescription]:
        if not isinstance(self._database, QueryTables):
            return {}  # statements and apps have no aggregates
        queries = self._database.query_names
        keys = [metadata_key_of(query, "description") for query in queries]
        data = dict(zip(queries, self._database.broker.get_metadata_of(keys), strict=True))
        before, found = self._known
        if data != before:
            found = {one.name: one for query, raw in data.items() if raw for one in aggregates_in(query, raw)}
            self._known = data, found
        return found

    def find(self, aggregate: str) -> AggregateDescription:
        known = self.all()
        if aggregate not in known:
            hint = closest(aggregate, known) or (
                f"there are: {', '.join(sorted(known))}" if known else "no query of this server has an aggregate"
            )
            raise NotThere(f'there is no aggregate "{aggregate:.100}"', hint=hint)
        return known[aggregate]

    def command(self, aggregate: str, command: str) -> CommandDescription:
        found = self.find(aggregate).commands
        if command not in found:
            hint = closest(command, found) or f"it has: {', '.join(sorted(found))}"
            raise NotThere(f'aggregate "{aggregate}" has no command "{command:.100}"', hint=hint)
        return found[command]

    def writes(self, topic: str) -> bool:
        """Return whether a topic holds the results of an aggregate."""
        return topic.endswith("-results") and any(results_topic(name) == topic for name in self.all())
