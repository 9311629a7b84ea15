"""Collect the changes of transactions as they are streamed, and know the position behind them."""

from __future__ import annotations

from typing import Any

from psycopg2 import sql

from potok.sources.cdc.envelopes.changes import CREATE, DELETE, TRUNCATE, UNAVAILABLE, UPDATE, Change, Row
from potok.sources.cdc.envelopes.shape import Shape
from potok.sources.cdc.landing.landing import CapturePosition, Output
from potok.sources.cdc.landing.pending import Pending
from potok.sources.cdc.postgres.chunks import VisibleTransactions
from potok.sources.cdc.postgres.pgoutput import Begin, Commit, Delete, Insert, Message, Relation, Truncate, Type, Update
from potok.sources.cdc.postgres.server import Server, column_of
from potok.sources.cdc.postgres.source import Origin
from potok.sources.cdc.postgres.types import PostgresType
from potok.topology.capture import Capture

_RECENT = 100_000


class Transactions:
    """Turns the messages of pgoutput into changes."""

    def __init__(self, capture: Capture, server: Server, pending: Pending, position: CapturePosition) -> None:
        self._capture, self._server, self.pending = capture, server, pending
        self._type_names = server.type_names()
        self._relations: dict[int, Shape | None] = {}
        stream = position.stream
        self._lsn, self._last = stream["lsn"], stream["last"]
        self._skip_of, self._skip = stream["commit"], stream["done"]
        self._begin: Begin | None = None
        self._skipping = self._done = 0
        self._seen: dict[int, int] = {}

    def position(self, before: CapturePosition) -> CapturePosition:
        done = max(self._done, self._skipping)
        commit = self._begin.lsn if self._begin is not None and done else 0
        if commit == 0 and self._skip_of > self._lsn:
            # The transaction that a crash has divided was not reached again.
            stream = dict(before.stream)
        else:
            stream = {"lsn": self._lsn, "commit": commit, "done": done if commit else 0, "last": self._last}
        return self.pending.position(before, stream)

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
        self.pending.add(shape, self._change(shape, message, lsn, begin), size, begin.xid)

    def truncate(self, message: Message, lsn: int) -> list[Output]:
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
            change = Change(TRUNCATE, None, None, False, *self._where(lsn, begin))
            outputs += self.pending.truncated(shape, change, begin.xid)
        return outputs

    @property
    def seen(self) -> int:
        return len(self._seen) and next(reversed(self._seen.values()))

    def ended_before(self, visible: VisibleTransactions, seen: int) -> bool:
        return any(self._seen.get(xid, seen + 1) <= seen for xid in visible.running)

    def _note_seen(self, xid: int) -> None:
        number = self.seen + 1
        self._seen.pop(xid, None)
        self._seen[xid] = number
        if len(self._seen) > _RECENT:
            del self._seen[next(iter(self._seen))]

    def _change(self, shape: Shape, message: Any, lsn: int, begin: Begin) -> Change:
        where = self._where(lsn, begin)
        if isinstance(message, Insert):
            return Change(CREATE, None, message.row, False, *where)
        if isinstance(message, Update):
            row = message.row
            if message.old is not None and message.old_is_key and UNAVAILABLE in row:
                row = self._filled(shape, row)
            return Change(UPDATE, message.old, row, message.old_is_key, *where)
        assert isinstance(message, Delete)
        return Change(DELETE, message.old, None, message.old_is_key, *where)

    def _where(self, lsn: int, begin: Begin) -> tuple[int, Origin]:
        return begin.commit_us // 1000, Origin(lsn, begin.xid, self._last)

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
                self._capture,
                key=each.name in keys,
            )
            for each in relation.columns
        )
        shape = Shape(relation.schema, relation.table, columns)
        self.pending.note_columns(shape)
        known = self._relations.get(relation.oid)
        return known if known is not None and known.columns == shape.columns else shape

    def _type_name(self, oid: int) -> str:
        if oid not in self._type_names:
            self._type_names |= self._server.type_names()
        return self._type_names.get(oid, "text")
