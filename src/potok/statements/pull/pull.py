"""Pull queries: SELECT without EMIT, on a snapshot of tables and streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.clock import now_ms
from potok.log.broker import Broker
from potok.snapshots.rows.row_reader import RowReader
from potok.snapshots.rows.versions import check_retained
from potok.snapshots.snapshot import Snapshot, read_snapshots
from potok.snapshots.tables import Tables, committed
from potok.sql.analysis.joins import JoinAnalysis
from potok.sql.analysis.order import Order
from potok.sql.analysis.relations import RelationAnalysis
from potok.sql.analysis.scope import Field
from potok.sql.budget import allowance, check_time, reserve, reserve_taken, settle
from potok.sql.catalog import Catalog
from potok.sql.errors import Refused, SourceLocation
from potok.sql.expressions.compute import compute
from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import Context
from potok.sql.properties import RANGE_SCANS, TABLE_SCANS, Properties
from potok.sql.syntax import ast
from potok.sql.types import quoted
from potok.statements.catalog.remote_queries import unprocessed_records
from potok.statements.database import Database
from potok.statements.frames import Frame, python_rows, retained, stacked, table_frame
from potok.statements.prepared import Prepared, prepared_for
from potok.statements.pull.allowed_values import Allowed
from potok.statements.pull.groups import group_frame
from potok.statements.pull.joins import join_frames
from potok.statements.pull.plan import PullPlan, plan_pull
from potok.statements.pull.row_matches import matched_rows, slots_to_match
from potok.statements.pull.row_selection import FEW, partners_key
from potok.statements.pull.tables import Access, access_of, table_frames
from potok.statements.records.decode import RecordReader
from potok.statements.results import Rows

Ends = Mapping[str, Mapping[int, int]]


def check_pull(catalog: Catalog, query: ast.Select, properties: Properties) -> None:
    """Raise if a pull query is invalid; nothing is read."""
    plan_pull(catalog, query, properties)


def run_pull(database: Database, query: ast.Select, properties: Properties) -> Rows:
    """Return the rows of a pull query from one snapshot: tables of queries that commit together are as of one batch,
    streams as of the start of the query."""
    prepared = prepared_for(database)
    plan = prepared.plan(query, properties)
    context = Context(now_ms=now_ms())
    pull = _Pull(database, prepared, plan, context, properties)
    with allowance():
        frame = pull.frame()
        rows = python_rows(frame.computed(plan.projected, context), frame.rows)
    if context.failures:
        first = context.failures[min(context.failures)]
        pull.warnings.append(f"some values could not be computed and are NULL, for example: {first}")
    return Rows("query", plan.columns, tuple(rows), warnings=tuple(pull.warnings))


class _Pull:
    """One execution of a plan."""

    def __init__(
        self, database: Database, prepared: Prepared, plan: PullPlan, context: Context, properties: Properties
    ) -> None:
        self._database, self._broker = database, database.broker
        self._prepared, self._plan, self._context = prepared, plan, context
        self._properties = properties
        self.warnings: list[str] = []

    def frame(self) -> Frame:
        """Return the selected rows before their expressions are computed."""
        plan = self._plan
        frame = self._read()
        if plan.grouping is not None:
            frame = group_frame(frame, plan.grouping, self._context)
            if plan.having is not None:
                frame = frame.where(plan.having, self._context)
        if plan.order:
            frame = _ordered(frame, plan.order, self._context)
        return frame if plan.limit is None else frame.head(plan.limit)

    def _read(self) -> Frame:
        """Return all rows of all sources, joined, for which the condition is true."""
        topics = [r.source.topic for r in self._plan.relations if not r.source.is_table]
        ends: Ends = self._broker.end_offsets_of(topics) if topics else {}
        tables = [relation for relation in self._plan.relations if relation.source.is_table]
        queries = [name for name in dict.fromkeys(r.source.table_of for r in tables) if self._has_started(name)]
        self._warn_of_stale(queries)
        looks = [partial(committed, self._broker, name) for name in queries]
        if not looks:
            return self._rows({}, ends)
        return read_snapshots(looks, lambda snapshots: self._rows(dict(zip(queries, snapshots, strict=True)), ends))

    def _has_started(self, query: str) -> bool:
        if self._prepared.has_started(query):
            return True
        self.warnings.append(f"query {query} has not started: its table has no rows yet")
        return False

    def _warn_of_stale(self, queries: Sequence[str]) -> None:
        """Warn if this process runs no queries and no other process does."""
        if self._database.shared is not None:
            return
        known = self._database.catalog_state().queries
        for name in queries:
            behind = unprocessed_records(self._broker, known[name]) if name in known else 0
            if behind:
                records = "1 record" if behind == 1 else f"{behind} records"
                self.warnings.append(f"query {name} is not running and is {records} behind; run it with potok serve")

    def _rows(self, snapshots: Mapping[str, Snapshot], ends: Ends) -> Frame:
        """Return the rows of one source. May run more than once if the tables change meanwhile."""
        plan = self._plan
        settle(0)
        if plan.streams_rows:
            return self._streamed(snapshots, ends)
        first = plan.relations[0]
        frame = stacked(list(retained(self._frames(first, snapshots, ends, plan.allowed))), self._fields(first))
        for relation, join in zip(plan.relations[1:], plan.joins, strict=True):
            allowed = _partners(frame, relation, join, plan.allowed, self._context)
            right = stacked(list(retained(self._frames(relation, snapshots, ends, allowed))), self._fields(relation))
            frame = join_frames(frame, right, join, self._context)
        if plan.where is not None:
            frame = frame.where(plan.where, self._context)
        if plan.lists:
            frame = exploded(frame, plan.lists, self._context)
        return frame if not plan.in_time else frame.take(pc.array_sort_indices(frame.columns[plan.in_time]))

    def _fields(self, relation: RelationAnalysis) -> list[Field]:
        return [field for field in relation.fields if field.slot in self._plan.wanted]

    def _streamed(self, snapshots: Mapping[str, Snapshot], ends: Ends) -> Frame:
        """Yield rows in chunks, within the row limit."""
        plan, found, count = self._plan, [], 0
        for read in self._frames(plan.relations[0], snapshots, ends, plan.allowed):
            check_time()
            frame = read if plan.where is None else read.where(plan.where, self._context)
            if plan.lists:
                frame = exploded(frame, plan.lists, self._context)
            reserve(frame.size)
            found.append(frame)
            count += frame.rows
            if plan.limit is not None and count >= plan.limit:
                break
        fields = self._fields(plan.relations[0])
        if not found and plan.lists:
            return exploded(stacked([], fields), plan.lists, self._context)
        return stacked(found, fields)

    def _frames(
        self, relation: RelationAnalysis, snapshots: Mapping[str, Snapshot], ends: Ends, allowed: Mapping[str, Allowed]
    ) -> Iterator[Frame]:
        if relation.match is not None:
            wanted = slots_to_match(relation)
            read = list(retained(self._records(relation, ends[relation.source.topic], wanted)))
            fields = [field for field in relation.match.rows.fields if field.slot in wanted]
            yield matched_rows(stacked(read, fields), relation, self._context)
            return
        if not relation.source.is_table:
            yield from self._records(relation, ends[relation.source.topic], self._plan.wanted)
            return
        source, alias, wanted = relation.source, relation.alias, self._plan.wanted
        reader = self._prepared.readers.reader(source)
        snapshot = snapshots.get(source.table_of)
        if reader is None or snapshot is None:
            return
        access = access_of(source, alias, reader, allowed)
        self._check_access(access, relation)
        if relation.as_of is not None:
            instant = as_of_ms(relation.as_of, self._context, relation.relation.at)
            yield version_frame(self._broker, relation, reader, snapshot, access, instant, wanted)
            return
        limited = self._plan.limit is not None and self._plan.streams_rows
        yield from table_frames(source, alias, reader, snapshot, access, wanted, limited=limited)

    def _check_access(self, access: Access, relation: RelationAnalysis) -> None:
        """Raise if a query would read more than the properties allow."""
        if access.keys is not None or self._properties.flag(TABLE_SCANS):
            return
        if access.in_range and self._properties.flag(RANGE_SCANS):
            return
        source, what = relation.source, "a range" if access.in_range else "all"
        keys = " AND ".join(f"{quoted(column.name)} = ..." for column in source.keys)
        hint = f"restrict the key: WHERE {keys}; or SET '{TABLE_SCANS}' = 'true'"
        raise Refused(
            f"the query would read {what} of table {quoted(source.name)}", hint=hint, location=relation.relation.at
        )

    def _records(self, relation: RelationAnalysis, ends: Mapping[int, int], wanted: frozenset[str]) -> Iterator[Frame]:
        topic, unreadable = relation.source.topic, 0
        alias = relation.alias if relation.match is None else relation.relation.row_alias or relation.relation.name
        reader = RecordReader(relation.source, alias, wanted)
        starts = self._broker.earliest_offsets(topic)
        for partition, end in sorted(ends.items()):
            for batch in self._broker.read(topic, partition, starts.get(partition, 0), end):
                check_time()
                read = reader.read(batch, partition)
                unreadable += len(read.unreadable)
                yield read.frame
        if unreadable:
            self.warnings.append(f"{unreadable} records of {topic} could not be decoded and are left out")


def _partners(
    left: Frame, relation: RelationAnalysis, join: JoinAnalysis, allowed: Mapping[str, Allowed], context: Context
) -> Mapping[str, Allowed]:
    """Look up the matches of a few rows by the key of the joined table."""
    looked_up = partners_key(relation.source, relation.alias, join)
    if looked_up is None or left.rows > FEW:
        return allowed
    by, slot = looked_up
    try:
        found = Allowed(
            tuple(value for value in left.computed([by], context)[0].unique().to_pylist() if value is not None)
        )
    except (ValueError, OverflowError):
        # The key has dates outside Python's calendar: compare all rows.
        return allowed
    known = allowed.get(slot)
    return {**allowed, slot: found if known is None else known.and_(found)}


def exploded(frame: Frame, lists: Sequence[Typed], context: Context) -> Frame:
    """Return a row per element of the lists; shorter lists are padded with NULL."""
    return spread_over(frame, frame.computed(lists, context))


def spread_over(frame: Frame, made: Sequence[pa.Array]) -> Frame:
    """Explode lists that are already computed."""
    lengths = [np.asarray(pc.fill_null(pc.list_value_length(part), 0).to_numpy(), np.int64) for part in made]
    counts = np.maximum.reduce(lengths)
    reserve(32 * int(counts.sum()))
    parents = np.repeat(np.arange(frame.rows), counts)
    indexes = np.arange(len(parents)) - np.repeat(np.cumsum(counts) - counts, counts)
    columns: dict[str, Any] = {}
    for index, (part, length) in enumerate(zip(made, lengths, strict=True)):
        starts = np.cumsum(length) - length
        at = pa.array(starts[parents] + indexes, mask=indexes >= length[parents])
        columns[f"exploded.{index}"] = pc.list_flatten(part).take(at)
    for column in frame.columns.values():
        reserve_taken(column, parents)
    return frame.take(parents).with_columns(columns)


def _ordered(frame: Frame, order: Sequence[Order], context: Context) -> Frame:
    """Sort by the last expression first: the sort is stable."""
    indexes = pa.array(np.arange(frame.rows))
    for part in reversed(order):
        (column,) = frame.computed([part.expression], context)
        found = pc.array_sort_indices(
            column.take(indexes),
            order="descending" if part.descending else "ascending",
            null_placement="at_start" if part.nulls_first else "at_end",
        )
        indexes = indexes.take(found)
    return frame.take(indexes)


def as_of_ms(instant: Typed, context: Context, location: SourceLocation) -> int:
    found = compute(instant, {}, 1, context)
    if pa.types.is_timestamp(found.type):
        found = pa.compute.divide(found.cast(pa.int64()), 1_000)
    value = found[0].as_py()
    if value is None:
        raise Refused("AS OF needs a timestamp, not NULL", hint="write AS OF '2024-05-01T12:00:00'", location=location)
    return int(value)


def version_frame(
    broker: Broker,
    relation: RelationAnalysis,
    reader: RowReader,
    snapshot: Snapshot,
    access: Access,
    instant_ms: int,
    wanted: frozenset[str],
) -> Frame:
    """Return the rows that a table had at a point in time, for some keys or all."""
    layout, source = reader.layout, relation.source
    if not layout.history_ms:
        hint = "leave AS OF out; only versioned tables keep a history"
        raise Refused(f"table {quoted(source.name)} is not versioned", hint=hint, location=relation.relation.at)
    check_retained(layout, Tables(broker, source.table_of).watermark_ms(layout.table), instant_ms)
    return table_frame(reader.as_of(snapshot, instant_ms, access.keys), source, relation.alias, wanted)
