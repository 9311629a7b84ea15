"""Collect changes until they land: their blocks, the columns of their tables, and the windows of chunks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from potok.sources.cdc.envelopes.changes import Change, ChangeBlock
from potok.sources.cdc.envelopes.envelope import Envelopes
from potok.sources.cdc.envelopes.shape import Shape
from potok.sources.cdc.landing.landing import CapturePosition, Output, TableProgress
from potok.sources.cdc.landing.topics import Topics
from potok.sources.cdc.landing.window import Window
from potok.topology.capture import Capture

_MOST_CHANGES = 20_000
_MOST_BYTES = 16 << 20


class Pending:
    """What was streamed and is not in the log yet, in the order of each table."""

    def __init__(self, capture: Capture, envelopes: Envelopes, topics: Topics, position: CapturePosition) -> None:
        self._capture, self._envelopes, self._topics = capture, envelopes, topics
        self._blocks: dict[str, list[ChangeBlock]] = {}
        self._schema_changes: list[Output] = []
        self._tables = dict(position.tables)
        self._bytes = 0
        self._windows: dict[str, Window] = {}
        self.count = 0

    @property
    def is_full(self) -> bool:
        return self.count >= _MOST_CHANGES or self._bytes >= _MOST_BYTES

    def add(self, shape: Shape, change: Change, size: int, transaction: Any) -> None:
        table = shape.name
        blocks = self._blocks.get(table)
        if blocks is None:
            blocks = self._blocks[table] = []
        if not blocks or blocks[-1].shape is not shape:
            blocks.append(ChangeBlock(shape))
        blocks[-1].changes.append(change)
        self.count += 1
        self._bytes += size
        window = self._windows.get(table)
        if window is not None:
            window.note(transaction, shape, change)

    def take(self) -> list[Output]:
        """Return everything as records, in the order of each table."""
        outputs = self._schema_changes
        for table, blocks in self._blocks.items():
            outputs += [Output(self._capture.topic(table), self._envelopes.records(block)) for block in blocks]
        self._blocks, self._schema_changes = {}, []
        self.count = self._bytes = 0
        return outputs

    def truncated(self, shape: Shape, change: Change, transaction: Any) -> list[Output]:
        """Return the records of a truncate: the one of Debezium, and one for each row that is gone."""
        records = self._envelopes.records(ChangeBlock(shape, changes=[change]))
        window = self._windows.get(shape.name)
        if window is not None:
            window.truncated_by.append(transaction)
        return [Output(self._capture.topic(shape.name), records, 0), *self._topics.deletions(shape.name)]

    def position(self, before: CapturePosition, stream: dict[str, Any]) -> CapturePosition:
        """Return a position with the columns that the tables have."""
        tables = {
            name: replace(before.tables[name], columns=progress.columns) for name, progress in self._tables.items()
        }
        return replace(before, stream=stream, tables=tables)

    def note_columns(self, shape: Shape, statement: str | None = None) -> None:
        """Record the columns of a table if they have changed."""
        known = self._tables[shape.name].columns
        if known != shape.described():
            self._schema_changes.append(self._topics.columns_changed(shape, known, statement))
            self._tables[shape.name] = TableProgress(columns=shape.described())

    def note_first_columns(self, shape: Shape) -> None:
        """Record the columns of a table when its first rows are read."""
        if self._tables[shape.name].columns is None:
            self.note_columns(shape)

    def open_window(self, table: str) -> None:
        """Note from here on what is streamed for a table."""
        self._windows[table] = Window(table)

    def close_window(self, table: str) -> Window:
        return self._windows.pop(table)
