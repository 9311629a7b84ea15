"""SHOW and DESCRIBE for streams, tables and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from potok.dead_letters.dead_letters import DeadLetters
from potok.duration import show_ms
from potok.snapshots.progress import read_progress
from potok.sql.catalog import Source, SourceColumn
from potok.sql.formats import SQL_NAMES
from potok.sql.registered_formats import REGISTERED
from potok.sql.types import type_name
from potok.statements.inspect.listing import listed, show_time, texts
from potok.statements.inspect.queries import brief_queries, lag_of
from potok.statements.inspect.topics import last_record_ms, retention_of
from potok.statements.messages import counted
from potok.statements.queries.processing_log import failure_messages
from potok.statements.results import Row, Rows

if TYPE_CHECKING:
    from potok.statements.database import Database


def show_sources(database: Database, *, tables: bool, extended: bool) -> Rows:
    """List all streams or all tables, with a description of each if `extended`."""
    kind = "Table" if tables else "Stream"
    sources = _sources(database, tables=tables)
    rows = [_line(source) for source in sources]
    columns = texts(f"{kind} Name", "Kafka Topic", "Key Format", "Value Format", "Windowed", "Query")
    details = [(source.name, describe_source(database, source, extended=True)) for source in sources]
    return listed(f"{kind.lower()}s", columns, rows, details if extended else ())


def describe_all(database: Database, *, tables: bool, extended: bool) -> Rows:
    """List the columns of all streams or all tables."""
    sources = _sources(database, tables=tables)
    rows = [(source.name, *row) for source in sources for row in _columns(source)]
    details = [(source.name, describe_source(database, source, extended=True)) for source in sources]
    return listed("description", texts("Name", "Field", "Type", "Key"), rows, details if extended else ())


def describe_source(database: Database, source: Source, *, extended: bool) -> Rows:
    """List the columns of a source; with `extended`, all details."""
    details: list[tuple[str, Any]] = [("Name", source.name)]
    if extended:
        details += [
            *_details(source),
            *_queries(database, source),
            *_topic(database, source),
            *_state(database, source),
        ]
    return listed("description", texts("Field", "Type", "Key"), _columns(source), details)


def show_types(database: Database) -> Rows:
    known = database.catalog.types
    return listed("types", texts("Type Name", "Schema"), [(name, type_name(known[name])) for name in sorted(known)])


_OF_REGISTRY = ("names=", "full_name=", "subject=")


def show_format(format_: str) -> str:
    """Format a format name as in a WITH clause, with its options."""
    name, _, options = format_.partition(";")
    rendered = SQL_NAMES.get(name, name.upper())
    if name in REGISTERED.values():
        # Names and subjects follow from the statement.
        options = ";".join(option for option in options.split(";") if not option.startswith(_OF_REGISTRY))
    options = options.removeprefix("nulls=default").removeprefix(";")
    return f"{rendered} ({options.replace(';', ', ')})" if options else rendered


def _sources(database: Database, *, tables: bool) -> list[Source]:
    catalog = database.catalog
    there = {name: source for name, source in catalog.built_in.items() if database.broker.has_topic(source.topic)}
    known = {**there, **catalog.sources}
    return [known[name] for name in sorted(known) if known[name].is_table == tables]


def _line(source: Source) -> Row:
    windowed = "true" if source.window is not None else "false"
    formats = (show_format(source.key_format), show_format(source.value_format))
    return (source.name, source.topic, *formats, windowed, source.query or source.table_of)


def _columns(source: Source) -> list[Row]:
    return [(column.name, type_name(column.type), _role(source, column)) for column in source.columns]


def _role(source: Source, column: SourceColumn) -> str:
    if column.header is not None:
        return f"HEADER('{column.header}')" if column.header else "HEADERS"
    if not column.is_key:
        return ""
    key = "PRIMARY KEY" if source.is_table else "KEY"
    return f"{key} (window type: {source.window.kind})" if source.window is not None else key


def _details(source: Source) -> list[tuple[str, Any]]:
    time = source.timestamp or "record timestamp"
    window = source.window
    size = "" if window is None or window.size_ms is None else f", {show_ms(window.size_ms)}"
    return [
        ("Type", source.kind),
        ("Timestamp field", f"{time}, as {source.timestamp_format}" if source.timestamp_format else time),
        ("Window", "" if window is None else f"{window.kind}{size}"),
        ("Key format", show_format(source.key_format)),
        ("Value format", show_format(source.value_format)),
        ("Read only", "yes" if source.read_only else ""),
        ("Statement", source.statement),
    ]


def _queries(database: Database, source: Source) -> list[tuple[str, Any]]:
    catalog_state, known = database.catalog_state(), {query.query_id: query for query in database.queries()}
    readers = [known[name] for name in catalog_state.readers(source) if name in known and name != source.query]
    writers = [known[name] for name in catalog_state.writers(source) if name in known]
    return [
        ("Queries that read from this", brief_queries(readers)),
        ("Queries that write to this", brief_queries(writers)),
    ]


def _topic(database: Database, source: Source) -> list[tuple[str, Any]]:
    broker = database.broker
    if not broker.has_topic(source.topic):
        return [("Kafka topic", f"{source.topic} (not created yet)")]
    (topic,) = broker.describe_topics([source.topic])
    last = last_record_ms(broker, topic)
    kept = (
        f"partitions: {len(topic.partitions)}, cleanup: {topic.config.cleanup_policy}, retention: {retention_of(topic)}"
    )
    return [
        ("Kafka topic", f"{source.topic} ({kept})"),
        ("Records in topic", str(topic.records) if topic.exact else f"at most {topic.records}"),
        ("Last record", "" if last is None else show_time(last)),
    ]


def _state(database: Database, source: Source) -> list[tuple[str, Any]]:
    """Show the statistics of the query that writes or materializes a source."""
    query_id = source.query or source.table_of
    info = next((query for query in database.queries() if query.query_id == query_id), None)
    if info is None:
        return []
    progress = read_progress(database.broker, query_id)
    lag = [("Lag", counted(lag_of(database, info), "record"))]
    if progress is None:
        return lag
    rows = [f"{name}: {count}" for name, count in sorted(progress.state_keys.items())]
    return [
        *lag,
        ("Records read", str(progress.total_in)),
        ("Records written", str(progress.total_out)),
        ("Last batch", f"{progress.batch} at {show_time(progress.committed_at_ms)}"),
        ("State rows", ", ".join(rows)),
        ("State bytes", str(progress.state_bytes) if rows else ""),
        ("Dead letters", _dead_letters(database, query_id, progress.dead_letters_by_reason)),
        ("Failed expressions", failure_messages(progress.failures)),
    ]


def _dead_letters(database: Database, query_id: str, by_reason: dict[str, int]) -> str:
    reasons: Sequence[str] = [f"{reason}: {count}" for reason, count in sorted(by_reason.items())]
    return f"{DeadLetters(database.broker, query_id).count()} open; {', '.join(reasons)}" if reasons else "none"
