"""Merge a chunk of a snapshot with the changes that were streamed while it was read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from potok.sources.cdc.envelopes.changes import UNAVAILABLE, Change, Row, Value
from potok.sources.cdc.envelopes.shape import Shape
from potok.sources.cdc.landing.chunks import Chunk, Visible, without

Key = tuple[Value, ...]


class TryAgain(Exception):
    """A chunk that cannot be merged: it is read again."""


@dataclass(slots=True)
class Window:
    """What was streamed for one table since a chunk of it was requested."""

    table: str
    changes: dict[Key, list[tuple[Any, Row | None]]] = field(default_factory=dict)
    """By key: the transaction, and the row after it, None for a deleted one."""
    truncated_by: list[Any] = field(default_factory=list)
    shape: Shape | None = None
    """The columns that the table had with the first change."""
    key_changed: bool = False

    def add(self, transaction: Any, key: Key, row: Row | None) -> None:
        self.changes.setdefault(key, []).append((transaction, row))

    def note(self, transaction: Any, shape: Shape, change: Change) -> None:
        """Note which row a change leaves under which key."""
        if self.shape is None:
            self.shape = shape
        elif self.shape is not shape and self.shape.key_columns != shape.key_columns:
            self.key_changed = True
        key = None if change.after is None else shape.key_of(change.after)
        if change.before is not None:
            old = shape.key_of(change.before)
            if old != key:
                self.add(transaction, old, None)
        if key is not None:
            self.add(transaction, key, change.after)

    def merge(self, chunk: Chunk) -> Chunk:
        """Return the chunk without the rows that newer changes, streamed before it, have replaced.

        A change that left out a TOASTed value has not replaced the whole row: its rest is in the chunk.
        """
        if any(not chunk.visible.sees(each) for each in self.truncated_by):
            return replace(chunk, columns=[column.slice(0, 0) for column in chunk.columns])
        last = {key: _last(entries, chunk.visible) for key, entries in self.changes.items()}
        newer = {key: row for key, row in last.items() if row is not None}
        if not newer or not chunk.rows:
            return chunk
        if self.key_changed:
            raise TryAgain
        keys = zip(*[chunk.columns[index].to_pylist() for index in chunk.shape.key_indexes], strict=True)
        columns = (self.shape or chunk.shape).key_columns
        texts = [column.read(values) for column, values in zip(columns, zip(*newer, strict=True), strict=True)]
        wanted = dict(zip(zip(*[each.to_pylist() for each in texts], strict=True), newer.values(), strict=True))
        gone: list[int] = []
        filled: dict[int, Row] = {}
        for number, key in enumerate(keys):
            row = wanted.get(key)
            if row is None:
                continue
            gone.append(number)
            if row != DELETED and UNAVAILABLE in row:
                if len(row) != len(chunk.columns):
                    raise TryAgain
                filled[number] = row
        return replace(chunk, columns=_with_rows(without(chunk.columns, gone), chunk.columns, filled))


DELETED: Row = ()


def _last(entries: list[tuple[Any, Row | None]], visible: Visible) -> Row | None:
    """Return the row after all changes that a chunk has not seen; None if it has seen all."""
    found: Row | None = None
    for transaction, row in entries:
        if visible.sees(transaction):
            continue
        if row is None:
            found = DELETED
        elif found is None or len(found) != len(row):
            found = row
        else:
            found = tuple([old if new is UNAVAILABLE else new for new, old in zip(row, found, strict=True)])
    return found


def _with_rows(columns: list[pa.Array], chunk: list[pa.Array], filled: dict[int, Row]) -> list[pa.Array]:
    """Append rows whose unavailable values are those of the chunk."""
    if not filled:
        return columns
    made = []
    for index, column in enumerate(columns):
        added = [
            chunk[index][number].as_py() if row[index] is UNAVAILABLE else _text(row[index])
            for number, row in filled.items()
        ]
        made.append(pa.concat_arrays([column, pa.array(added, pa.string())]))
    return made


def _text(value: object) -> str | None:
    return value.decode() if isinstance(value, bytes) else None
