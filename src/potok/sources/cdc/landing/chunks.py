"""Chunks of a table in the order of its key, read by a thread while changes are streamed."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import Queue
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import csv

from potok.sources.cdc.envelopes.shape import Shape

_LEAST_BLOCK = 1 << 20


class Visible(Protocol):
    """Which transactions a chunk has seen."""

    def sees(self, transaction: Any) -> bool: ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a table as columns of text, and what they have seen."""

    id: str
    shape: Shape
    columns: list[pa.Array]
    visible: Any
    """A `Visible`; what else it says is known where the changes are streamed."""
    after: tuple[str, ...] | None
    """The key of the last row; None if there was no row."""
    until: tuple[str, ...] | None
    """The key at which the snapshot ends; None if the table was empty."""
    last: bool
    """Whether there are no rows behind it."""
    read_ms: int

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    id: str
    table: str
    after: tuple[str, ...] | None
    until: tuple[str, ...] | None
    """The key at which the snapshot ends; None if that is the largest key of the table."""


class ChunkSource(Protocol):
    """Reads chunks from a database. All calls come from one thread."""

    def read(self, request: ChunkRequest) -> Chunk: ...

    def announce(self, request: ChunkRequest) -> None:
        """Write into the stream that a chunk was read, if the stream does not say so by itself."""

    def close(self) -> None: ...


class ChunkReader:
    """A thread that reads one chunk at a time."""

    def __init__(self, name: str, source: ChunkSource) -> None:
        self._source = source
        self._requests: Queue[ChunkRequest | None] = Queue()
        self.chunk: Chunk | None = None
        """The chunk that was requested last, once it was read."""
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"potok-cdc-chunks-{name}", daemon=True)
        self._thread.start()

    def request(self, request: ChunkRequest) -> None:
        self.chunk = None
        self._requests.put(request)

    def close(self) -> None:
        self._requests.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while (request := self._requests.get()) is not None:
                self.chunk = self._source.read(request)
                self._source.announce(request)
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits for the chunk
            self.failure = error
        finally:
            self._source.close()


def columns_of(data: pa.Buffer, count: int, quote: str = '"') -> list[pa.Array]:
    """Return rows of CSV as columns of text. Only NULL is without quotes and empty."""
    names = [str(index) for index in range(count)]
    if not data.size:
        return [pa.array([], pa.string()) for _ in names]
    table = csv.read_csv(
        pa.BufferReader(data),
        # A row must not be longer than a block.
        csv.ReadOptions(column_names=names, block_size=max(_LEAST_BLOCK, data.size + 1), use_threads=False),
        csv.ParseOptions(quote_char=quote, newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    )
    return [table.column(name).combine_chunks() for name in names]


def without(columns: list[pa.Array], rows: list[int]) -> list[pa.Array]:
    """Return the columns without some rows."""
    if not rows:
        return columns
    keep = np.ones(len(columns[0]), np.bool_)
    keep[rows] = False
    return [column.filter(pa.array(keep)) for column in columns]
