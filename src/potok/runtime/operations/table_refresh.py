"""Load a table from a DataFrame, and append what has changed since the last time to its topic."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from potok.clock import now_ms
from potok.duration import show_ms
from potok.errors import PotokError, QueryError
from potok.log.broker import LOG_SCHEMA, Broker
from potok.log.failpoint import failpoint
from potok.operators.sinks.topic_sink import encode_keys
from potok.records.formats.registry import format_named
from potok.records.garbage_collection import collector_paused
from potok.topology.graph import Topology
from potok.topology.nodes import TableSource

log = logging.getLogger(__name__)


class TableNotLoadedError(QueryError):
    """A DataFrame that could not be loaded, or that cannot be a table."""

    def __init__(
        self, table: str, cause: str, hint: str = "correct load=; the table keeps its rows until then"
    ) -> None:
        super().__init__(f'table "{table}" was not loaded: {cause}', hint=hint)


class TableRefresher:
    """Refreshes one table. What the topic holds is read once, and then kept in memory.

    Args:
        session: Returns the argument of the function that loads the DataFrame.
    """

    def __init__(self, source: TableSource, broker: Broker, session: Callable[[], Any]) -> None:
        assert source.refresh is not None
        self.source, self.refresh_spec = source, source.refresh
        self._broker, self._session = broker, session
        self._rows: dict[bytes, bytes] | None = None

    def refresh(self) -> int:
        """Load the DataFrame, append its changes in one transaction, and return their number."""
        table = self._loaded()
        with collector_paused():
            rows = self._encoded(table)
            before = self._known()
            changes: dict[bytes, bytes | None] = {key: row for key, row in rows.items() if before.get(key) != row}
            changes |= dict.fromkeys(key for key in before if key not in rows)
            if changes:
                # Records that are older than the first load find its rows.
                self._append(changes, now_ms() if before else 0)
        failpoint("refresh.done")
        self._rows = rows
        return len(changes)

    def _loaded(self) -> pa.Table:
        assert self.refresh_spec.load is not None
        try:
            return arrow_of(self.refresh_spec.load(self._session()))
        except PotokError:
            raise
        except Exception as error:
            raise TableNotLoadedError(self.source.name, f"{type(error).__name__}: {error}") from error

    def _encoded(self, table: pa.Table) -> dict[bytes, bytes]:
        """Return the rows as they are in the topic, in the order of their keys."""
        name, schema = self.refresh_spec.key, self.source.value.schema
        wanted = table.column_names if schema is None else [field.name for field in schema.fields]
        missing = [column for column in [name, *wanted] if column not in table.column_names]
        if missing:
            raise self._misfit(f'there is no column "{missing[0]}"; it has {", ".join(table.column_names)}')
        keys = self._keys(table.column(name))
        columns = [table.column(column).combine_chunks() for column in wanted]
        try:
            if schema is not None:
                columns = [c.cast(field.type) for c, field in zip(columns, schema.arrow, strict=True)]
            rows = pa.StructArray.from_arrays(columns, names=wanted)
        except pa.ArrowException as error:
            raise self._misfit(str(error)) from error
        encoded = format_named(self.source.value.format).encode(rows, schema)
        if encoded.errors:
            raise self._misfit(next(iter(encoded.errors.values())))
        pairs = zip(keys, encoded.values.to_pylist(), strict=True)
        found = dict(sorted(pairs))
        if len(found) < len(keys):
            raise self._misfit(
                f'the column "{name}" does not identify a row: {len(keys) - len(found)} rows repeat a key'
            )
        return found

    def _keys(self, column: pa.ChunkedArray) -> list[bytes]:
        if column.null_count:
            raise self._misfit(f'the column "{self.refresh_spec.key}" has {column.null_count} nulls')
        schema = self.source.key.schema
        try:
            typed = column.combine_chunks() if schema is None else column.combine_chunks().cast(schema.arrow)
        except pa.ArrowException as error:
            raise self._misfit(f'the column "{self.refresh_spec.key}": {error}') from error
        encoded = encode_keys(typed, self.source.key.format)
        if encoded.errors:
            raise self._misfit(next(iter(encoded.errors.values())))
        keys: list[bytes] = encoded.values.to_pylist()
        return keys

    def _misfit(self, cause: str) -> TableNotLoadedError:
        hint = "correct load=, key= or value=; the table keeps its rows until then"
        return TableNotLoadedError(self.source.name, cause, hint)

    def _known(self) -> Mapping[bytes, bytes]:
        if self._rows is None:
            self._rows = {}
            ends = self._broker.end_offsets(self.source.topic)
            for partition, start in self._broker.start_offsets(self.source.topic).items():
                for batch in self._broker.read(self.source.topic, partition, start, ends[partition]):
                    for key, row in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True):
                        if row is None:
                            self._rows.pop(key, None)
                        else:
                            self._rows[key] = row
        return self._rows

    def _append(self, changes: Mapping[bytes, bytes | None], at_ms: int) -> None:
        count = len(changes)
        columns = {
            "key": pa.array(list(changes), pa.binary()),
            "value": pa.array(list(changes.values()), pa.binary()),
            "timestamp": pa.repeat(pa.scalar(at_ms, pa.int64()), count),
            "ingested": pa.nulls(count, pa.int64()),
            "headers": pa.nulls(count, LOG_SCHEMA.field("headers").type),
        }
        self._broker.append(self.source.topic, pa.RecordBatch.from_pydict(columns, schema=LOG_SCHEMA))


def refreshers_of(topology: Topology, broker: Broker, session: Callable[[], Any]) -> list[TableRefresher]:
    """Return a refresher for each table of a topology that is loaded from a DataFrame."""
    sources = [source for source in topology.of_type(TableSource) if source.refresh is not None]
    return [TableRefresher(source, broker, session) for source in sources]


def load_tables(refreshers: list[TableRefresher], broker: Broker) -> None:
    """Load all tables before a query starts. A table that has rows from an earlier start may fail to load."""
    for refresher in refreshers:
        try:
            refresher.refresh()
        except TableNotLoadedError as error:
            if not any(broker.end_offsets(refresher.source.topic).values()):
                raise
            log.warning("%s", error)


def keep_refreshing(refreshers: list[TableRefresher], ended: Callable[[float], bool]) -> None:
    """Refresh tables at their intervals, each in a thread, until the query has ended; `ended` waits for that."""
    for refresher in refreshers:
        interval_ms = refresher.refresh_spec.interval_ms
        if interval_ms is not None:
            name = f"potok-refresh-{refresher.source.name}"
            threading.Thread(target=_repeat, args=(refresher, interval_ms, ended), name=name, daemon=True).start()


def _repeat(refresher: TableRefresher, interval_ms: int, ended: Callable[[float], bool]) -> None:
    while not ended(interval_ms / 1000):
        try:
            refresher.refresh()
        except PotokError as error:
            log.warning("%s; next attempt in %s", error.message, show_ms(interval_ms))


def arrow_of(frame: Any) -> pa.Table:
    """Return a DataFrame of Spark, pandas or Polars, or an Arrow table, as an Arrow table."""
    if isinstance(frame, pa.Table):
        return frame
    for name in ("toArrow", "to_arrow"):
        if hasattr(frame, name):
            found = getattr(frame, name)()
            return pa.table({n: _plain(found.column(n)) for n in found.column_names})
    if hasattr(frame, "iloc"):
        return pa.Table.from_pandas(frame, preserve_index=False)
    raise TypeError(f"load= returned {type(frame).__name__}; return a DataFrame of Spark, pandas or Polars")


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text and bytes with the offsets that records have; Polars and Spark may use larger ones."""
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return pc.cast(column, pa.string())
    return pc.cast(column, pa.binary()) if pa.types.is_large_binary(column.type) else column
