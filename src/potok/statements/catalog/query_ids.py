"""The ids of queries. State is found by them, so one that is taken, or was never let go of, is not given again."""

from __future__ import annotations

import re

from potok.log.broker import Broker
from potok.snapshots.tables import known_queries
from potok.sql.errors import Place, Refused
from potok.sql.syntax import ast
from potok.sql.types import quoted
from potok.statements.catalog.catalog_state import CatalogState
from potok.statements.messages import prefix_of

_GIVEN = re.compile(r"[A-Z0-9_]+")
_RESERVED = ("CSAS_", "CTAS_", "CST_", "INSERTQUERY_")


def query_id_for(statement: ast.Statement, sequence: int, books: CatalogState, broker: Broker) -> str:
    """The id of the query that a statement begins; "" if it begins none. One that is replaced keeps its own."""
    if isinstance(statement, ast.CreateAs):
        known = books.query_of(statement.name)
        if known:
            return known
    if isinstance(statement, ast.InsertSelect):
        given = next((given for given in statement.properties if given.name == "QUERY_ID"), None)
        if given is not None and given.value is not None:
            return _given(str(given.value).upper(), books, broker, given.value_at)
    prefix = prefix_of(statement)
    if not prefix:
        return ""
    taken = books.referenced.union(known_queries(broker))
    while f"{prefix}_{sequence}" in taken:
        sequence += 1
    return f"{prefix}_{sequence}"


def _given(query_id: str, books: CatalogState, broker: Broker, place: Place) -> str:
    """Raises where an id that a statement chose cannot be had."""
    if not _GIVEN.fullmatch(query_id):
        hint = "write letters, digits and _: QUERY_ID = 'big_orders'"
        raise Refused(f"QUERY_ID cannot be '{query_id}'", hint=hint, place=place)
    if query_id.startswith(_RESERVED):
        hint = f"choose one that begins with none of {', '.join(_RESERVED)}"
        raise Refused(f"ids like {query_id} are given by the system", hint=hint, place=place)
    if query_id in books.referenced:
        hint = f"choose another QUERY_ID, or TERMINATE {quoted(query_id)}; first"
        raise Refused(f"there is a query {quoted(query_id)} already", hint=hint, place=place)
    if query_id in known_queries(broker):
        hint = "choose another QUERY_ID"
        raise Refused(f"a query {quoted(query_id)} has run on this log, and its state is there", hint=hint, place=place)
    return query_id
