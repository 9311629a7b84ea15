"""AS OF: the rows of a table at a point in time."""

from __future__ import annotations

import pyarrow as pa

from potok.log.broker import Broker
from potok.snapshots.row_reader import RowReader
from potok.snapshots.snapshot import Snapshot
from potok.snapshots.tables import Tables
from potok.snapshots.versions import check_retained
from potok.sql.analysis.relations import RelationAnalysis
from potok.sql.errors import Refused, SourceLocation
from potok.sql.expressions.compute import compute
from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import Context
from potok.sql.types import quoted
from potok.statements.frames import Frame, table_frame
from potok.statements.pull.tables import Access


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
    check_retained(layout, Tables(broker, source.table_of).clock_ms(layout.table), instant_ms)
    return table_frame(reader.as_of(snapshot, instant_ms, access.keys), source, relation.alias, wanted)
