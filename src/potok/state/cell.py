"""The fenced cell: a value, the value before it, and the attempt that wrote it.

crc32 | epoch | batch | length of new | length of old | room for new | length of key | new | old | key

A length of -1 means absent: a cell whose `new` is absent is a delete. `room` is the space reserved for `new`, so that
all cells of a table of fixed width have one size and are read and written as one array. The cell contains the key
only if it is too long for the store.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.checksum import crc32
from potok.errors import StateError
from potok.state.fence import Attempt, Fence

HEADER = struct.Struct("<IIQiiII")
ABSENT = -1
_FEW = 32
"""Up to this many cells are read one by one, which is faster than building arrays."""

_HEAD = np.dtype(
    [
        ("crc", "<u4"),
        ("epoch", "<u4"),
        ("batch", "<u8"),
        ("new_length", "<i4"),
        ("old_length", "<i4"),
        ("room", "<u4"),
        ("key_length", "<u4"),
    ]
)


REPAIR = (
    "rebuild the tables next to the query: potok run PROGRAM --shadow --until-end, then potok promote PROGRAM; "
    "or go back and write output again: potok state restore BACKUP --force, "
    "or potok offsets reset QUERY --to earliest --drop-state"
)
"""What to run if state cannot be used any more."""


class CorruptCell(StateError):
    """A cell with a wrong checksum."""

    def __init__(self, table: str, key: bytes | None = None) -> None:
        where = "" if key is None else f" at key {key!r}"
        super().__init__(
            f'the state of table "{table}" is damaged{where}',
            hint=f"potok state verify lists all damage; {REPAIR}",
        )


class Cell(NamedTuple):
    epoch: int
    batch: int
    new: bytes | None
    old: bytes | None
    key: bytes | None = None

    def before(self, fence: Fence) -> bytes | None:
        """Return the value before the fence's attempt."""
        return self.new if fence.counts(self.epoch, self.batch) else self.old


def encode_cell(attempt: Attempt, new: bytes | None, old: bytes | None, key: bytes = b"") -> bytes:
    new_length = ABSENT if new is None else len(new)
    old_length = ABSENT if old is None else len(old)
    header = HEADER.pack(0, attempt.epoch, attempt.batch, new_length, old_length, max(new_length, 0), len(key))
    body = b"".join((header[4:], new or b"", old or b"", key))
    return crc32(body).to_bytes(4, "little") + body


def encode_cells(
    attempt: Attempt, new: Sequence[bytes | None], old: Sequence[bytes | None], keys: Sequence[bytes] | None = None
) -> list[bytes]:
    """Encode many cells of any width; `keys` are those that the cells must contain."""
    heads = np.zeros(len(new), _HEAD)
    heads["epoch"], heads["batch"] = attempt.epoch, attempt.batch
    heads["new_length"] = [ABSENT if data is None else len(data) for data in new]
    heads["old_length"] = [ABSENT if data is None else len(data) for data in old]
    heads["room"] = np.maximum(heads["new_length"], 0)
    if keys is not None:
        heads["key_length"] = [len(key) for key in keys]
    data, size = heads.tobytes(), HEADER.size
    starts = range(4, len(data), size)
    tails = zip(new, old, keys or [b""] * len(new), strict=True)
    cells: list[bytes] = []
    for start, (after, before, key) in zip(starts, tails, strict=True):
        body = data[start : start + size - 4] + (after or b"") + (before or b"") + key
        cells.append(crc32(body).to_bytes(4, "little") + body)
    return cells


def decode_cell(data: bytes, table: str = "", key: bytes = b"") -> Cell:
    if len(data) < HEADER.size or crc32(memoryview(data)[4:]) != int.from_bytes(data[:4], "little"):
        raise CorruptCell(table, key)
    _, epoch, batch, new_length, old_length, room, key_length = HEADER.unpack_from(data)
    start = HEADER.size
    new = None if new_length == ABSENT else data[start : start + new_length]
    end = start + room + max(old_length, 0)
    old = None if old_length == ABSENT else data[start + room : end]
    return Cell(epoch, batch, new, old, data[-key_length:] if key_length else None)


def values_before(cells: Sequence[bytes | None], fence: Fence, table: str) -> list[bytes | None]:
    """Return the values before the fence's attempt, of many cells."""
    if len(cells) < _FEW:
        return [None if data is None else decode_cell(data, table).before(fence) for data in cells]
    found = [data for data in cells if data is not None]
    size = HEADER.size
    if min(map(len, found), default=size) < size:
        raise CorruptCell(table)
    heads = np.frombuffer(b"".join([data[:size] for data in found]), _HEAD)
    bodies = [data[4:] for data in found]
    if np.any(np.fromiter(map(crc32, bodies), np.uint32, len(bodies)) != heads["crc"]):
        raise CorruptCell(table)
    counted = _counted(heads, fence)
    lengths = np.where(counted, heads["new_length"], heads["old_length"])
    begins = size - 4 + np.where(counted, 0, heads["room"]).astype(np.int64)
    ends = np.where(lengths == ABSENT, ABSENT, begins + lengths).tolist()
    parts = zip(bodies, begins.tolist(), ends, strict=True)
    values = [None if end == ABSENT else body[begin:end] for body, begin, end in parts]
    if len(found) == len(cells):
        return values
    rest = iter(values)
    return [None if data is None else next(rest) for data in cells]


def _counted(heads: npt.NDArray[Any], fence: Fence) -> npt.NDArray[np.bool_]:
    """Return the cells whose new value counts; attempts are few, so each is checked once."""
    counted = np.zeros(len(heads), np.bool_)
    epochs, batches = heads["epoch"], heads["batch"]
    for epoch in np.unique(epochs).tolist():
        rows = epochs == epoch
        seen = np.unique(batches[rows]).tolist()
        counting = [batch for batch in seen if fence.counts(epoch, batch)]
        counted |= rows if len(counting) == len(seen) else rows & np.isin(batches, np.array(counting, np.uint64))
    return counted


@lru_cache(maxsize=256)
def fixed_dtype(payload: np.dtype[Any]) -> np.dtype[Any]:
    """Return the layout of a whole cell of fixed width, for reading and writing many as one array."""
    return np.dtype([*_HEAD.descr, ("new", payload), ("old", payload)])


def decode_fixed(
    cells: Sequence[bytes | None], payload: np.dtype[Any], fence: Fence, table: str
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the values before the fence's attempt, and which of them exist."""
    layout = fixed_dtype(payload)
    size, empty = layout.itemsize, bytes(layout.itemsize)
    data = b"".join([cell or empty for cell in cells])
    if len(data) != size * len(cells):
        data = b"".join([empty if cell is None else _without_key(cell, size, table) for cell in cells])
    array = np.frombuffer(data, layout)
    sums = checksums(data, size)
    found = np.fromiter((cell is not None for cell in cells), np.bool_, len(cells))
    if np.any(found & ((sums != array["crc"]) | (array["room"] != payload.itemsize))):
        raise CorruptCell(table)
    counted = _counted(array, fence)
    values = np.where(counted, array["new"], array["old"])
    exists = found & (np.where(counted, array["new_length"], array["old_length"]) != ABSENT)
    return values, exists


def _without_key(data: bytes, size: int, table: str) -> bytes:
    """Return a cell without the long key it contains."""
    if len(data) == size:
        return data
    carried = int.from_bytes(data[HEADER.size - 4 : HEADER.size], "little")
    if len(data) != size + carried or crc32(memoryview(data)[4:]) != int.from_bytes(data[:4], "little"):
        raise CorruptCell(table)
    return crc32(memoryview(data)[4:size]).to_bytes(4, "little") + data[4:size]


def with_key(cell: bytes, key: bytes) -> bytes:
    """Add its key to a cell of fixed width, because the store cannot hold it."""
    length = HEADER.size - 4
    body = cell[4:length] + len(key).to_bytes(4, "little") + cell[HEADER.size :] + key
    return crc32(body).to_bytes(4, "little") + body


def encode_fixed(
    attempt: Attempt,
    new: npt.NDArray[Any],
    present: npt.NDArray[np.bool_] | None,
    old: npt.NDArray[Any],
    existed: npt.NDArray[np.bool_],
) -> list[bytes]:
    """Encode cells of one width; `present` false writes a delete."""
    layout = fixed_dtype(new.dtype)
    cells = np.zeros(len(new), layout)
    width = new.dtype.itemsize
    cells["epoch"], cells["batch"], cells["room"] = attempt.epoch, attempt.batch, width
    cells["new_length"] = width if present is None else np.where(present, width, ABSENT)
    cells["old_length"] = np.where(existed, width, ABSENT)
    cells["new"], cells["old"] = new, old
    cells["crc"] = checksums(cells.tobytes(), layout.itemsize)
    data, size = cells.tobytes(), layout.itemsize
    return [data[i : i + size] for i in range(0, len(data), size)]


def checksums(data: bytes, size: int) -> npt.NDArray[np.uint32]:
    """Return the checksum of each of many cells of one size, without the checksum field."""
    view = memoryview(data)
    return np.array([crc32(view[i + 4 : i + size]) for i in range(0, len(data), size)], np.uint32)


MISFIT = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, struct.error, pa.ArrowException)
"""What Python, NumPy and Arrow raise for unexpected data."""


class CellDoesNotFit(StateError):
    """A cell that does not fit its table."""

    def __init__(self, table: str, error: BaseException) -> None:
        super().__init__(
            f'the state of table "{table}" holds a cell that does not fit the table: {type(error).__name__}: {error}'[
                :500
            ],
            hint=f"check who else writes to the store; {REPAIR}",
        )


@contextmanager
def reading_cells(table: str) -> Iterator[None]:
    """Raise `CellDoesNotFit` for cells that do not fit their table."""
    try:
        yield
    except MISFIT as error:
        raise CellDoesNotFit(table, error) from error
