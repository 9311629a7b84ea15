"""Query ids. State is stored under them, so an id that is in use or still has state is not reused."""

from __future__ import annotations

import re

from potok.log.broker import Broker
from potok.snapshots.tables import known_queries
from potok.sql.errors import Refused, SourceLocation
from potok.sql.syntax import ast
from potok.sql.types import quoted
from potok.statements.catalog.catalog_state import CatalogState
from potok.statements.messages import prefix_of

_GIVEN = re.compile(r"[A-Z0-9_]+")
_RESERVED = ("CSAS_", "CTAS_", "CST_", "INSERTQUERY_")


def query_id_for(statement: ast.Statement, sequence: int, catalog_state: CatalogState, broker: Broker) -> str:
    """Return the id of the query that a statement starts, or "" if it starts none. A replacement keeps the id."""
    if isinstance(statement, ast.CreateAs):
        known = catalog_state.query_of(statement.name)
        if known:
            return known
    if isinstance(statement, ast.InsertSelect):
        given = next((given for given in statement.properties if given.name == "QUERY_ID"), None)
        if given is not None and given.value is not None:
            return _given(str(given.value).upper(), catalog_state, broker, given.value_at)
    prefix = prefix_of(statement)
    if not prefix:
        return ""
    taken = catalog_state.referenced.union(known_queries(broker))
    while f"{prefix}_{sequence}" in taken:
        sequence += 1
    return f"{prefix}_{sequence}"


def _given(query_id: str, catalog_state: CatalogState, broker: Broker, location: SourceLocation) -> str:
    """Raise if an id chosen by the user is invalid or taken."""
    if not _GIVEN.fullmatch(query_id):
        hint = "write letters, digits and _: QUERY_ID = 'big_orders'"
        raise Refused(f"QUERY_ID cannot be '{query_id}'", hint=hint, location=location)
    if query_id.startswith(_RESERVED):
        hint = f"choose one that does not start with any of {', '.join(_RESERVED)}"
        raise Refused(f"ids like {query_id} are reserved", hint=hint, location=location)
    if query_id in catalog_state.referenced:
        hint = f"choose another QUERY_ID, or TERMINATE {quoted(query_id)}; first"
        raise Refused(f"query {quoted(query_id)} already exists", hint=hint, location=location)
    if query_id in known_queries(broker):
        hint = "choose another QUERY_ID"
        raise Refused(f"query {quoted(query_id)} ran before, and its state still exists", hint=hint, location=location)
    return query_id
