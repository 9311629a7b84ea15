"""The queries whose tables and streams a script reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from potok.sql.properties import Properties
from potok.sql.syntax import ast
from potok.statements.database import Database
from potok.statements.prepared import prepared_for


def read_by(database: Database, script: Sequence[ast.Parsed], properties: Mapping[str, str]) -> set[str]:
    """Return the queries that write what the pull queries of a script read. Raise if one of them is invalid before the
    script is executed: it cannot wait for a table that the same script creates."""
    database.refresh()
    prepared, chosen = prepared_for(database), Properties.of(properties)
    sources = [
        relation.source
        for parsed in script
        if isinstance(parsed.statement, ast.Query) and parsed.statement.query.emit is None
        for relation in prepared.plan(parsed.statement.query, chosen).relations
    ]
    return {source.table_of or source.query for source in sources} - {""}
