"""Reject changes that would break readers or lose data. Commands that are already in the log are not checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from potok.log.broker import Broker
from potok.runtime.queries.prepare import changes_of, check_picklable
from potok.snapshots.ledger_view import read_entry
from potok.sql.analysis.grouping import is_aggregate
from potok.sql.catalog import Catalog, Source, SourceColumn
from potok.sql.errors import Refused, SourceLocation
from potok.sql.functions.function import TableFunction
from potok.sql.functions.registry import function_named
from potok.sql.syntax import ast
from potok.sql.syntax.walk import calls_of, names_of
from potok.sql.types import quoted, type_name
from potok.statements.catalog.catalog_state import CatalogState, Wanted, statement_of
from potok.statements.errors import TopicGone
from potok.statements.messages import mismatch_message
from potok.topology.compare import compare, shape_of
from potok.topology.inference.infer import infer


def check_change(
    statement: ast.Statement,
    before: CatalogState,
    after: CatalogState,
    query_id: str,
    broker: Broker,
    *,
    remote: bool,
) -> None:
    """Raise if a valid statement must not be executed.

    Args:
        remote: Another process runs the queries. It may have started one that has no progress yet.
    """
    _check_read_only(statement, before)
    if isinstance(statement, ast.Drop) and statement.delete_topic:
        _check_topic_is_its_own(statement, before)
    if isinstance(statement, ast.CreateAs):
        known = before.catalog.sources.get(statement.name)
        if known is not None and known.query:
            _check_rows_go_on(known, after.catalog.sources[statement.name], statement.at)
    if isinstance(statement, ast.CreateSource | ast.CreateAs):
        known = before.catalog.sources.get(statement.name)
        if known is not None and not known.query:
            _check_declared_again(known, after.catalog.sources[statement.name], statement.at)
    if isinstance(statement, ast.CreateSource):
        _check_partitions(after.catalog.sources[statement.name], broker, statement.at)
    if isinstance(statement, ast.Steer) and statement.action == "TERMINATE":
        _check_no_source_table(statement, before)
    new = after.queries.get(query_id)
    if new is not None:
        check_picklable(new.topology)
        old = before.queries.get(query_id)
        _check_state(old if remote else None, new, broker, statement.at)
        if isinstance(statement, ast.CreateAs) and old is not None and not old.broken:
            _check_upgrade(statement, old, before)


def _check_partitions(source: Source, broker: Broker, location: SourceLocation) -> None:
    """Raise if PARTITIONS contradicts the topic: the number of partitions of an existing topic does not change."""
    existing = broker.partitions(source.topic) if broker.has_topic(source.topic) else source.partitions
    if source.partitions is not None and source.partitions != existing:
        hint = f"leave PARTITIONS out, or write PARTITIONS = {existing}"
        raise Refused(
            f"topic {source.topic} exists with {existing} partitions, not {source.partitions}",
            hint=hint,
            location=location,
        )


def check_sources(broker: Broker, wanted: Wanted, catalog_state: CatalogState) -> None:
    """Raise if a query cannot start or resume because a topic that it reads was deleted. A topic that no statement
    created, or that another query writes, may still be created, unless this query has read it."""
    gone = [topic for topic in wanted.topology.source_topics if not broker.has_topic(topic)]
    if not gone:
        return
    entry = read_entry(broker, wanted.query_id)
    known = {} if entry is None else entry.topic_ids
    made = {source.topic for source in catalog_state.catalog.sources.values() if source.statement}
    written = {topic for other in catalog_state.queries.values() for topic in other.topology.sink_topics}
    for topic in gone:
        if topic in known or topic in made - written:
            kind = "TABLE" if wanted.kind in ("CTAS", "SOURCE TABLE") else "STREAM"
            drop = f"DROP {kind} {quoted(wanted.source)}"
            statement = f"TERMINATE {wanted.query_id}" if wanted.kind == "INSERT" else drop
            raise TopicGone(wanted.query_id, topic, statement)


def _check_read_only(statement: ast.Statement, catalog_state: CatalogState) -> None:
    """Reject changes to sources of CREATE SOURCE, which only reads a topic that others own."""
    if not isinstance(statement, ast.CreateSource | ast.CreateAs | ast.AlterSource | ast.Drop):
        return
    if isinstance(statement, ast.Drop) and statement.kind == "CONNECTOR":
        return
    known = catalog_state.catalog.sources.get(statement.name)
    read_only = known is not None and known.read_only
    named, again = quoted(statement.name), "DROP it and create it again"
    made_so = isinstance(statement, ast.CreateSource) and statement.read_only
    replaces = isinstance(statement, ast.CreateSource | ast.CreateAs) and statement.or_replace
    if replaces and (read_only or made_so):
        raise Refused(f"{named} is read-only and cannot be replaced", hint=again, location=statement.at)
    if isinstance(statement, ast.AlterSource) and read_only:
        raise Refused(f"{named} is read-only and cannot be altered", hint=again, location=statement.at)
    if isinstance(statement, ast.Drop) and statement.delete_topic and read_only:
        hint = "leave DELETE TOPIC out"
        raise Refused(f"{named} is read-only and its topic cannot be deleted", hint=hint, location=statement.at)


def _check_no_source_table(statement: ast.Steer, catalog_state: CatalogState) -> None:
    """Reject terminating the query that maintains a source table."""
    query = catalog_state.queries.get(statement.query_id)
    if query is not None and query.kind == "SOURCE TABLE":
        hint = f"DROP TABLE {quoted(query.source)}; or PAUSE {query.query_id};"
        raise Refused(
            f"query {query.query_id} maintains source table {quoted(query.source)}", hint=hint, location=statement.at
        )


def _check_topic_is_its_own(statement: ast.Drop, catalog_state: CatalogState) -> None:
    source = catalog_state.catalog.source(statement.name, statement.at)
    others = [other for other in catalog_state.catalog.readers([source.topic]) if other.name != source.name]
    if others:
        named = ", ".join(quoted(other.name) for other in others)
        drops = " ".join(f"DROP {other.kind} {quoted(other.name)};" for other in others)
        raise Refused(
            f"topic {source.topic} is also used by {named}",
            hint=f"leave DELETE TOPIC out, or {drops} first",
            location=statement.at,
        )


def _check_rows_go_on(known: Source, source: Source, location: SourceLocation) -> None:
    """Check that a replacement can resume in the same topic: its readers must be able to decode both the old records
    and the new ones."""
    if (known.topic, known.key_format) != (source.topic, source.key_format) or not _same(known.keys, source.keys):
        raise not_upgradable(known, "another topic, or another key", location)
    if known.value_format != source.value_format or known.window != source.window:
        raise not_upgradable(known, "another format, or other windows", location)
    if not known.value_format.startswith("sql_json") and not _same(known.values, source.values):
        raise not_upgradable(known, "other columns, which requires a JSON value format", location)
    check_columns(known, source, location)


def _check_declared_again(known: Source, source: Source, location: SourceLocation) -> None:
    """Reject a replacement that does more than add columns at the end: queries and tables decode the topic by its
    declaration."""
    kept = source.values[: len(known.values)]
    changes = {
        "another topic": known.topic != source.topic,
        "another key, or another key format": known.key_format != source.key_format
        or not _same(known.keys, source.keys),
        "another value format": known.value_format != source.value_format,
        "other windows": known.window != source.window,
        "another TIMESTAMP column": (known.timestamp, known.timestamp_format)
        != (source.timestamp, source.timestamp_format),
        "changed, missing or reordered columns": not _same(known.values, kept),
    }
    found = [change for change, there in changes.items() if there]
    if found:
        hint = f"add columns at the end, or DROP {known.kind} {quoted(known.name)}; and create it again"
        raise Refused(f"{quoted(known.name)} cannot be replaced by one with {found[0]}", hint=hint, location=location)


def _same(before: Sequence[SourceColumn], after: Sequence[SourceColumn]) -> bool:
    return [(column.name, column.type) for column in before] == [(column.name, column.type) for column in after]


def _check_upgrade(statement: ast.CreateAs, old: Wanted, catalog_state: CatalogState) -> None:
    """Check a replacement of a running query. The query that follows a terminated one only has to match its state and
    columns."""
    replaced, known = statement_of(old), catalog_state.catalog.sources.get(statement.name)
    if isinstance(replaced, ast.CreateAs) and known is not None:
        check_query(known, replaced.query, statement.query, catalog_state.catalog, statement.at)


def _check_state(old: Wanted | None, new: Wanted, broker: Broker, location: SourceLocation) -> None:
    """Raise if the stored state, or that of `old`, does not match the new query."""
    changes = changes_of(new.topology, broker)
    if not changes and old is not None and not old.broken:
        shapes = [shape_of(wanted.topology, infer(wanted.topology)) for wanted in (old, new)]
        changes = compare(shapes[0], shapes[1])
    misfits = [change for change in changes if not change.fits]
    if misfits:
        reasons = "; ".join(dict.fromkeys(mismatch_message(change, new.source) for change in misfits))
        kind = "TABLE" if new.kind in ("CTAS", "SOURCE TABLE") else "STREAM"
        hint = f"choose another name, or DROP {kind} {quoted(new.source)}; and create it again"
        raise Refused(f"the state of query {new.query_id} does not match: {reasons}", hint=hint, location=location)


def check_columns(known: Source, source: Source, location: SourceLocation) -> None:
    """Reject a replacement that does more than add columns at the end."""
    for index, column in enumerate(known.values):
        kept = source.column(column.name)
        if kept is None or kept.is_key:
            raise not_upgradable(known, f"no column {quoted(column.name)}", location)
        if kept.type != column.type:
            change = f"{quoted(column.name)} as {type_name(kept.type)} instead of {type_name(column.type)}"
            raise not_upgradable(known, change, location)
        if source.values[index].name != column.name:
            raise not_upgradable(known, f"{quoted(column.name)} in another position", location)
    if (known.timestamp, known.timestamp_format) != (source.timestamp, source.timestamp_format):
        raise not_upgradable(known, "another TIMESTAMP column", location)


def check_query(known: Source, old: ast.Select, new: ast.Select, catalog: Catalog, location: SourceLocation) -> None:
    """Reject a replacement whose records would be partitioned, grouped or stored differently, by the rules of ksqlDB.

    A replacement may compute other values, filter by another condition, and add columns at the end. Sources, PARTITION
    BY, GROUP BY and aggregates must stay the same. A query with a join, a window, a table function or an aggregate of
    a table cannot be replaced.
    """
    for query in (old, new):
        fixed = next(_fixed(query, catalog), "")
        if fixed:
            hint = f"choose another name, or DROP {known.kind} {quoted(known.name)}; and create it again"
            raise Refused(
                f"a query with {fixed} cannot be replaced: {quoted(known.name)}", hint=hint, location=location
            )
    if old.relation.name != new.relation.name:
        raise not_upgradable(known, f"another source, {quoted(new.relation.name)}", location)
    if old.partition_by != new.partition_by:
        raise not_upgradable(known, "another PARTITION BY", location)
    if old.group_by != new.group_by:
        raise not_upgradable(known, "another GROUP BY", location)
    if _aggregates(old) != _aggregates(new):
        raise not_upgradable(known, "other aggregates", location)
    if _aggregates(old) and _columns(old) != _columns(new):
        changed = ", ".join(quoted(name) for name in sorted(_columns(old) ^ _columns(new)))
        raise not_upgradable(known, f"other columns to aggregate: {changed}", location)


def not_upgradable(source: Source, change: str, location: SourceLocation) -> Refused:
    hint = f"choose another name, or DROP {source.kind} {quoted(source.name)}; and create it again"
    return Refused(
        f"the query of {quoted(source.name)} cannot be replaced by one with {change}", hint=hint, location=location
    )


def _fixed(query: ast.Select, catalog: Catalog) -> Iterator[str]:
    """Yield the parts that cannot be upgraded."""
    if query.joins:
        yield "a join"
    if query.window is not None:
        yield "a window"
    if any(isinstance(function_named(call.name), TableFunction) for item in query.items for call in calls_of(item)):
        yield "a table function"
    source = catalog.sources.get(query.relation.name)
    if source is not None and source.is_table and query.group_by:
        yield "an aggregate of a table"


def _aggregates(query: ast.Select) -> list[ast.Call]:
    parts = [*query.items, *(() if query.having is None else (query.having,))]
    return list(dict.fromkeys(call for part in parts for call in calls_of(part) if is_aggregate(call)))


def _columns(query: ast.Select) -> set[str]:
    """Return the columns that reach the aggregation: those of the result and of the conditions."""
    conditions = [part for part in (query.where, query.having) if part is not None]
    return {name.name for part in (*query.items, *query.group_by, *conditions) for name in names_of(part)}
