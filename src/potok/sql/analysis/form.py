"""The physical forms of a SELECT, and the clauses that each of them rejects."""

from __future__ import annotations

from enum import Enum

from potok.sql.errors import Refused
from potok.sql.properties import PULL_LIMITS, PULLS, SUPPRESS, Properties
from potok.sql.syntax import ast


class Form(Enum):
    """How a SELECT is executed: as a query that writes a topic, as one that is read while it runs, or at once."""

    PERSISTENT = "persistent"
    PUSH = "push"
    PULL = "pull"


def check_clauses(query: ast.Select, form: Form, properties: Properties) -> None:
    """Raise if a clause is not supported in this form, whatever the sources are."""
    if form is Form.PULL:
        _check_pull(query, properties)
    else:
        _check_continuous(query, form, properties)


def _check_pull(query: ast.Select, properties: Properties) -> None:
    if not properties.flag(PULLS):
        hint = f"write EMIT CHANGES, or SET '{PULLS}' = 'true'"
        raise Refused("pull queries are disabled", hint=hint, location=query.at)
    if query.limit is not None and not properties.flag(PULL_LIMITS):
        hint = f"leave it out, or SET '{PULL_LIMITS}' = 'true'"
        raise Refused("LIMIT is disabled for pull queries", hint=hint, location=query.at)
    if query.partition_by:
        hint = "leave it out, or keep the query running: EMIT CHANGES"
        raise Refused("PARTITION BY is not for queries that end", hint=hint, location=query.partition_by[0].at)
    if query.window is not None:
        hint = "keep the query running: EMIT CHANGES; or group by parts of the time: GROUP BY ROWTIME / 3600000"
        raise Refused("WINDOW is for queries that keep running", hint=hint, location=query.window.at)


def _check_continuous(query: ast.Select, form: Form, properties: Properties) -> None:
    if query.limit is not None and form is Form.PERSISTENT:
        raise Refused("a query that keeps running has no LIMIT", hint="leave it out", location=query.at)
    if query.order_by:
        hint = "ORDER BY is for pull queries, which end"
        raise Refused("a query that keeps running has no order", hint=hint, location=query.order_by[0].at)
    if query.emit is ast.Emit.FINAL and query.window is None:
        hint = "EMIT FINAL waits for windows to close: add WINDOW and GROUP BY, or write EMIT CHANGES"
        raise Refused("there is no window to close", hint=hint, location=query.at)
    if query.emit is ast.Emit.FINAL and not properties.flag(SUPPRESS):
        hint = f"write EMIT CHANGES, or SET '{SUPPRESS}' = 'true'"
        raise Refused("EMIT FINAL is disabled", hint=hint, location=query.at)
    if query.group_by and query.partition_by:
        hint = "GROUP BY already determines the key"
        raise Refused("GROUP BY and PARTITION BY exclude each other", hint=hint, location=query.partition_by[0].at)
