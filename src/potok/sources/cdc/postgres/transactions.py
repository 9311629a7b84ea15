"""Collect the changes of transactions as they are streamed, and know the position behind them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from psycopg2 import sql

from potok.sources.cdc.changes import CREATE, DELETE, TRUNCATE, UPDATE, Change, ChangeBlock
from potok.sources.cdc.envelope import Envelopes
from potok.sources.cdc.landing import CapturePosition, Output, TableProgress
from potok.sources.cdc.postgres.pgoutput import (
    UNAVAILABLE,
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    Row,
    Truncate,
    Type,
    Update,
)
from potok.sources.cdc.postgres.server import Server, column_of
from potok.sources.cdc.postgres.types import PostgresType
from potok.sources.cdc.postgres.window import Window
from potok.sources.cdc.shape import Shape
from potok.sources.cdc.topics import Topics
from potok.topology.capture import Capture

_MOST_CHANGES = 20_000
_MOST_BYTES = 16 << 20
_RECENT = 100_000


class Transactions:
    """The changes that are not in the log yet."""

    def __init__(
        self, capture: Capture, server: Server, envelopes: Envelopes, topics: Topics, position: CapturePosition
    ) -> None:
        self._capture, self._server, self._envelopes, self._topics = capture, server, envelopes, topics
        self._type_names = server.type_names()
        self._relations: dict[int, Shape | None] = {}
        self._blocks: dict[str, list[ChangeBlock]] = {}
        self._schema_changes: list[Output] = []
        self._tables = dict(position.tables)
        stream = position.stream
        self._lsn, self._last = stream["lsn"], stream["last"]
        self._skip_of, self._skip = stream["commit"], stream["done"]
        self._begin: Begin | None = None
        self._skipping = self._done = self._bytes = 0
        self._seen: dict[int, int] = {}
        self.pending = 0
        self.windows: dict[str, Window] = {}

    @property
    def is_full(self) -> bool:
        return self.pending >= _MOST_CHANGES or self._bytes >= _MOST_BYTES

    def position(self, before: CapturePosition) -> CapturePosition:
        """Return the position behind everything that was read."""
        done = max(self._done, self._skipping)
        commit = self._begin.lsn if self._begin is not None and done else 0
        if commit == 0 and self._skip_of > self._lsn:
            # The transaction that a crash has divided was not reached again.
            stream = before.stream
        else:
            stream = {"lsn": self._lsn, "commit": commit, "done": done if commit else 0, "last": self._last}
        tables = {
            name: replace(before.tables[name], columns=progress.columns) for name, progress in self._tables.items()
        }
        return replace(before, stream=stream, tables=tables)

    def take(self) -> list[Output]:
        """Return what is pending as records, in the order of each table."""
        outputs = self._schema_changes
        for table, blocks in self._blocks.items():
            outputs += [Output(self._capture.topic(table), self._envelopes.records(block)) for block in blocks]
        self._blocks, self._schema_changes = {}, []
        self.pending = self._bytes = 0
        return outputs

    def control(self, message: Message) -> None:
        """Take a message that is not a change."""
        if isinstance(message, Begin):
            self._begin, self._done = message, 0
            self._skipping = self._skip if message.lsn == self._skip_of else 0
        elif isinstance(message, Commit):
            assert self._begin is not None
            self._note_seen(self._begin.xid)
            self._lsn, self._last = message.end_lsn, message.lsn
            self._begin, self._done, self._skipping = None, 0, 0
        elif isinstance(message, Relation):
            self._relations[message.oid] = self._shape(message)
        elif isinstance(message, Type):
            # The base of a domain is known by its own name.
            self._type_names.setdefault(message.oid, message.name)

    def change(self, message: Any, lsn: int, size: int) -> None:
        """Take a change of a row, unless it has landed before a crash."""
        shape = self._relations[message.relation]
        self._done += 1
        if self._done <= self._skipping:
            return
        if shape is None:
            return
        begin = self._begin
        assert begin is not None
        table = shape.name
        blocks = self._blocks.get(table)
        if blocks is None:
            blocks = self._blocks[table] = []
        if not blocks or blocks[-1].shape is not shape:
            blocks.append(ChangeBlock(shape))
        change = self._change(shape, message, lsn, begin)
        blocks[-1].changes.append(change)
        self.pending += 1
        self._bytes += size
        window = self.windows.get(table)
        if window is not None:
            _note(window, begin.xid, shape, change)

    def truncate(self, message: Message, lsn: int) -> list[Output]:
        """Return the records of a truncate: the one of Debezium, and one for each row that is gone."""
        assert isinstance(message, Truncate)
        begin = self._begin
        assert begin is not None
        self._done += 1
        if self._done <= self._skipping:
            return []
        outputs: list[Output] = []
        for oid in message.relations:
            shape = self._relations[oid]
            if shape is None:
                continue
            change = Change(TRUNCATE, None, None, False, lsn, begin.xid, begin.commit_us // 1000, self._last)
            records = self._envelopes.records(ChangeBlock(shape, changes=[change]))
            outputs.append(Output(self._capture.topic(shape.name), records, 0))
            outputs += self._topics.deletions(shape.name)
            if shape.name in self.windows:
                window = self.windows[shape.name]
                window.truncated_by.append(begin.xid)
        return outputs

    def open_window(self, table: str) -> Window:
        """Note from here on what is streamed for a table."""
        window = self.windows[table] = Window(table)
        return window

    def close_window(self, table: str) -> None:
        self.windows.pop(table, None)

    @property
    def seen(self) -> int:
        """How many transactions were streamed."""
        return len(self._seen) and next(reversed(self._seen.values()))

    def was_streamed_before(self, xid: int, seen: int) -> bool:
        return self._seen.get(xid, seen + 1) <= seen

    def _note_seen(self, xid: int) -> None:
        number = self.seen + 1
        self._seen.pop(xid, None)
        self._seen[xid] = number
        if len(self._seen) > _RECENT:
            del self._seen[next(iter(self._seen))]

    def _change(self, shape: Shape, message: Any, lsn: int, begin: Begin) -> Change:
        where = (lsn, begin.xid, begin.commit_us // 1000, self._last)
        if isinstance(message, Insert):
            return Change(CREATE, None, message.row, False, *where)
        if isinstance(message, Update):
            row = message.row
            if message.old is not None and message.old_is_key and UNAVAILABLE in row:
                row = self._filled(shape, row)
            return Change(UPDATE, message.old, row, message.old_is_key, *where)
        assert isinstance(message, Delete)
        return Change(DELETE, message.old, None, message.old_is_key, *where)

    def _filled(self, shape: Shape, row: Row) -> Row:
        """Read TOASTed values of a row that got another key: a table has nothing under the new key to take them from.

        The values are those of now. If they have changed since, the change that did it follows in the stream.
        """
        missing = [index for index, value in enumerate(row) if value is UNAVAILABLE]
        names = [sql.SQL("{}::text").format(sql.Identifier(shape.columns[index].name)) for index in missing]
        tests = [
            sql.SQL("{} = {}").format(sql.Identifier(column.name), sql.Literal((value or b"").decode()))
            for column, value in zip(shape.key_columns, shape.key_of(row), strict=True)
        ]
        query = sql.SQL("SELECT {} FROM {} WHERE {}").format(
            sql.SQL(", ").join(names), sql.Identifier(shape.schema, shape.table), sql.SQL(" AND ").join(tests)
        )
        found = self._server.rows(query)
        if not found:
            return row
        filled = list(row)
        for index, value in zip(missing, found[0], strict=True):
            filled[index] = None if value is None else value.encode()
        return tuple(filled)

    def _shape(self, relation: Relation) -> Shape | None:
        """Return the columns of a table, and record how they have changed."""
        table = f"{relation.schema}.{relation.table}"
        if table not in self._capture.tables:
            return None
        if relation.identity == "f":
            keys = set(self._server.key_names(table))
        else:
            keys = {column.name for column in relation.columns if column.identity}
        columns = tuple(
            column_of(
                each.name,
                PostgresType(each.type_oid, each.modifier, self._type_name(each.type_oid)),
                self._capture.decimals,
                key=each.name in keys,
            )
            for each in relation.columns
        )
        shape = Shape(relation.schema, relation.table, columns)
        if self._tables[table].columns != shape.described():
            self._record_columns(shape)
        known = self._relations.get(relation.oid)
        return known if known is not None and known.columns == shape.columns else shape

    def note_columns(self, shape: Shape) -> None:
        """Record the columns of a table when its first rows are read."""
        if self._tables[shape.name].columns is None:
            self._record_columns(shape)

    def _record_columns(self, shape: Shape) -> None:
        self._schema_changes.append(self._topics.columns_changed(shape, self._tables[shape.name].columns))
        self._tables[shape.name] = TableProgress(columns=shape.described())

    def _type_name(self, oid: int) -> str:
        if oid not in self._type_names:
            self._type_names |= self._server.type_names()
        return self._type_names.get(oid, "text")


def _note(window: Window, xid: int, shape: Shape, change: Change) -> None:
    """Note which row a change leaves under which key."""
    key = None if change.after is None else shape.key_of(change.after)
    if change.before is not None:
        old = shape.key_of(change.before)
        if old != key:
            window.add(xid, old, None)
    if key is not None:
        window.add(xid, key, change.after)
