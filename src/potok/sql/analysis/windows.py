"""Convert window clauses to windows of a topology."""

from __future__ import annotations

from potok.duration import days
from potok.errors import TopologyError
from potok.sql.catalog import WindowShape
from potok.sql.errors import Refused
from potok.sql.syntax import ast
from potok.topology.nodes.windows import DEFAULT_RETENTION, Window, hopping, session, tumbling

DEFAULT_GRACE = days(1)
"""The default grace, as in ksqlDB. It does not delay results, which late records update. EMIT FINAL waits for it, so
its default is no grace, as in ksqlDB."""


def shape_of(clause: ast.WindowClause) -> WindowShape:
    return WindowShape(clause.kind, None if clause.kind == "SESSION" else clause.size_ms)


def window_of(clause: ast.WindowClause, *, final: bool) -> Window:
    least = clause.size_ms + (clause.grace_ms or 0)
    if clause.retention_ms is not None and clause.retention_ms < least:
        hint = f"write RETENTION {least} MILLISECONDS or more"
        raise Refused("RETENTION is shorter than the window and its grace", hint=hint, location=clause.at)
    grace = _ms(clause.grace_ms or 0) if final or clause.grace_ms is not None else DEFAULT_GRACE
    retention = DEFAULT_RETENTION if clause.retention_ms is None else _ms(clause.retention_ms)
    try:
        if clause.kind == "TUMBLING":
            return tumbling(_ms(clause.size_ms), grace=grace, retention=retention)
        if clause.kind == "HOPPING":
            return hopping(_ms(clause.size_ms), _ms(clause.advance_ms or 0), grace=grace, retention=retention)
        return session(_ms(clause.size_ms), grace=grace, retention=retention)
    except TopologyError as error:
        raise Refused(error.message, hint=error.hint, location=clause.at) from error


def _ms(count: int) -> str:
    return f"{count} milliseconds"
