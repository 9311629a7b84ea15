"""The tables of programs as a database: programs define them, and any process may read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from potok.log.broker import Broker
from potok.settings import Settings
from potok.snapshots.progress import read_progress
from potok.snapshots.rows.layout import TableLayout, load_layouts
from potok.sql.catalog import Catalog, Source, SourceColumn, StoredTable, WindowShape
from potok.sql.errors import Refused
from potok.sql.syntax import ast
from potok.sql.types import BIGINT, BOOLEAN, BYTES, DOUBLE, INT, VARCHAR, array, map_of, struct
from potok.state.entry import metadata_key_of
from potok.statements.catalog.catalog_state import CatalogState
from potok.statements.catalog.stored_values import (
    KEY,
    VALUE,
    StoredRow,
    StoredValue,
    any_key,
    as_json,
    same_key,
    sql_name,
)
from potok.statements.database import Database
from potok.statements.queries.runner import QueryInfo
from potok.statements.results import Done

_STATES = {"starting": "RUNNING", "running": "RUNNING", "waiting": "WAITING", "failed": "ERROR"}
_KEYS = (VARCHAR, INT, BIGINT, DOUBLE, BOOLEAN, BYTES)


class Controlled(Protocol):
    """A query that this process runs."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...


Differences = Callable[[], list[dict[str, Any]]]
"""Returns what the program on disk changes: `step`, `what` and `fits` of each change."""


class QueryTables(Database):
    """The tables of queries of `StreamsBuilder` programs, which run in this process or in another one. Statements can
    only read them."""

    keeps_commands = False

    def __init__(self, broker: Broker, settings: Settings, queries: Sequence[str]) -> None:
        self._queries = tuple(queries)
        self._seen: tuple[bytes | None, ...] | None = None
        self._controlled: dict[str, Controlled] = {}
        self._differences: dict[str, Differences] = {}
        super().__init__(broker, settings, runs=False, logs_dead_letters=False)

    @property
    def catalog(self) -> Catalog:
        self.refresh()
        return super().catalog

    def refresh(self) -> None:
        """Add the tables that queries have created meanwhile: a program may have been changed and restarted."""
        with self._changing:
            self._catch_up()

    def apply(self, parsed: ast.Parsed, properties: Mapping[str, str]) -> Done:
        hint = "change the program and restart it"
        raise Refused("tables of a program are defined by the program", hint=hint, location=parsed.at)

    def control(self, query: str, running: Controlled) -> None:
        """Let clients pause and resume a query that this process runs."""
        self._controlled[query] = running

    def compare(self, query: str, differences: Differences) -> None:
        """Let clients compare a query with its program on disk."""
        self._differences[query] = differences

    def differences(self, query_id: str) -> list[dict[str, Any]]:
        """Return what the program on disk changes in a query of this process."""
        if query_id not in self._differences:
            hint = "compare it where its program is: potok diff PROGRAM"
            raise Refused(f'the program of query "{query_id}" does not run in this process', hint=hint)
        return self._differences[query_id]()

    def actions(self, query_id: str) -> tuple[str, ...]:
        steered = ("pause", "resume") if query_id in self._controlled else ()
        return (*steered, *(("diff",) if query_id in self._differences else ()))

    def steer(self, query_id: str, action: str) -> str:
        """Pause or resume a query of this process between two batches; return what was done."""
        running = self._controlled.get(query_id)
        if running is None:
            hint = "pause it in the process that runs it: potok run PROGRAM --serve PORT"
            raise Refused(f'query "{query_id}" does not run in this process', hint=hint)
        (running.pause if action == "pause" else running.resume)()
        return f"query {query_id} is {'paused' if action == 'pause' else 'resumed'}"

    @property
    def query_names(self) -> tuple[str, ...]:
        return self._queries

    def queries(self) -> list[QueryInfo]:
        found = []
        for query in self._queries:
            progress = read_progress(self.broker, query)
            state = _STATES.get("" if progress is None else progress.state, "STOPPED")
            error = "" if progress is None else progress.error
            found.append(QueryInfo(query, f'program "{query}"', "PROGRAM", "", state, error, (), ()))
        return found

    def _catch_up(self) -> None:
        seen = tuple(self.broker.get_metadata_of([metadata_key_of(query, "tables") for query in self._queries]))
        if seen == self._seen:
            return
        sources: dict[str, Source] = {}
        for query, data in zip(self._queries, seen, strict=True):
            for layout in load_layouts(data).values() if data is not None else ():
                name = sql_name(layout.table)
                if name in sources:
                    name = f"{sql_name(query)}_{name}"
                sources[name] = _source(name, query, layout)
        self._turn_to(CatalogState(Catalog(sources), {}), self._applied)
        self._seen = seen


def _source(name: str, query: str, layout: TableLayout) -> Source:
    key_type, value_type = layout.key_type, layout.value_type
    is_plain = key_type is not None and (key_type in _KEYS or pa.types.is_decimal(key_type))
    shown_key = key_type if is_plain and key_type is not None else VARCHAR
    is_record = value_type is not None and pa.types.is_struct(value_type)
    if value_type is not None and is_record:
        fields = [(field.name.upper(), sql_type(field.type)) for field in value_type]
    else:
        fields = [(VALUE, VARCHAR if value_type is None else sql_type(value_type))]
    key_name = KEY if all(field != KEY for field, _ in fields) else f"ROW{KEY}"
    stored_table = StoredTable(
        layout.table,
        as_json if value_type is None else StoredRow(layout.table, tuple(fields), is_record),
        StoredValue(layout.table, shown_key),
        same_key if is_plain else any_key,
        is_json=value_type is None,
    )
    columns = (SourceColumn(key_name, shown_key, is_key=True), *(SourceColumn(*field) for field in fields))
    return Source(
        name,
        True,
        columns,
        "",
        "sql_json",
        "sql_json",
        window=_window(layout),
        query=query,
        table_of=query,
        stored_table=stored_table,
    )


def _window(layout: TableLayout) -> WindowShape | None:
    if not layout.window:
        return None
    if layout.window != "fixed":
        return WindowShape("SESSION")
    is_hopping = layout.advance_ms not in (0, layout.window_ms)
    return WindowShape("HOPPING" if is_hopping else "TUMBLING", layout.window_ms)


def sql_type(type_: pa.DataType) -> pa.DataType:
    """Return the SQL type for a declared type; VARCHAR if there is none."""
    if pa.types.is_integer(type_):
        return BIGINT if type_.bit_width == 64 else INT
    if pa.types.is_floating(type_):
        return DOUBLE
    if pa.types.is_struct(type_):
        return struct([(field.name.upper(), sql_type(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return map_of(VARCHAR, sql_type(type_.item_type))
    if pa.types.is_list(type_):
        return array(sql_type(type_.value_type))
    return type_ if type_ in (BOOLEAN, BYTES) or pa.types.is_decimal(type_) else VARCHAR
