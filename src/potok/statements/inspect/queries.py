"""SHOW QUERIES: the persistent queries and their progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import read_progress
from potok.statements.inspect.listing import listed, show_time, texts
from potok.statements.results import Row, Rows

if TYPE_CHECKING:
    from potok.statements.database import Database
    from potok.statements.queries.runner import QueryInfo

_PLAIN = ("Query ID", "Query Type", "Status", "Sink Name", "Sink Kafka Topic", "Query String")
_MORE = (
    "Reads",
    "Lag",
    "Records/s",
    "Batch",
    "Committed At",
    "Records In",
    "Records Out",
    "Dead Letters",
    "Failures",
    "Error",
)
_NUMBERS = ("Lag", "Batch", "Records In", "Records Out", "Dead Letters", "Failures")


def show_queries(database: Database, *, extended: bool) -> Rows:
    queries = database.queries()
    if not extended:
        return listed("queries", texts(*_PLAIN), [_plain(query) for query in queries])
    rows = [(*_plain(query), *_more(database, query)) for query in queries]
    return listed("queries", texts(*_PLAIN, *_MORE, numbers=_NUMBERS), rows)


def _plain(query: QueryInfo) -> Row:
    return (
        query.query_id,
        "PERSISTENT",
        query.state,
        query.source,
        ", ".join(query.writes),
        " ".join(query.text.split()),
    )


def _more(database: Database, query: QueryInfo) -> Row:
    progress = read_progress(database.broker, query.query_id)
    lag = lag_of(database, query)
    head: Row = (", ".join(query.reads), lag, f"{query.records_per_second:.1f}")
    if progress is None:
        return (*head, 0, "", 0, 0, 0, 0, query.error)
    totals = (progress.total_in, progress.total_out, progress.dead_letters, sum(progress.failures.values()))
    return (*head, progress.batch, show_time(progress.committed_at_ms), *totals, query.error)


def lag_of(database: Database, query: QueryInfo) -> int:
    """Return the lag of a query by its ledger, wherever it runs."""
    entry = read_entry(database.broker, query.query_id)
    there = [topic for topic in query.reads if database.broker.has_topic(topic)]
    ends = database.broker.end_offsets_of(there)
    if entry is not None:
        return entry.offsets.pending(ends)
    return sum(end for parts in ends.values() for end in parts.values())


def brief_queries(queries: Sequence[QueryInfo]) -> Rows | None:
    """Format some queries as a table; None if there are none."""
    if not queries:
        return None
    rows = [(query.query_id, query.state, query.text) for query in queries]
    return listed("queries", texts("Query ID", "Status", "Query String"), rows)
