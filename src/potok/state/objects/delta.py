"""The format of a delta: everything that one write changed in a shard, as one object.

A delta names its parent by digest, so the deltas of a shard form a chain, and the digest of the last one stands for all
of them. The file is a header in JSON, which has its length before it, and an Arrow stream of cells: first the keys
that are removed, without cells, then the cells that are written.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import pyarrow as pa

from potok.state.cell_batches import OPTIONS, PLAIN, SCHEMA, cell_batch, cell_rows
from potok.state.fence import Attempt
from potok.state.store import Row

_HEAD = struct.Struct("<4sI")
_MAGIC = b"PDL1"

_FEW = 1_000
"""Fewer cells are not compressed, which takes longer than writing them."""


class DeltaUnreadable(ValueError):
    """Data that is not a delta, or a damaged one."""


class Position(NamedTuple):
    """A place in the chain of a shard: after the delta with this number and digest.

    `chain` tells apart the chains of queries that had the same name, one after the other.
    """

    number: int
    chain: str
    digest: str

    def __str__(self) -> str:
        """Return the text for the ledger; of two positions of one shard, the later one is greater as text."""
        return f"{self.number:016d}:{self.chain}:{self.digest}"

    @classmethod
    def of(cls, text: str) -> Position:
        number, chain, digest = text.split(":")
        return cls(int(number), chain, digest)


@dataclass(frozen=True, slots=True)
class Base:
    """The snapshot from which a chain is restored, and how many cells and bytes follow it in deltas; number 0 is no
    snapshot."""

    number: int = 0
    name: str = ""
    cells_since: int = 0
    bytes_since: int = 0


@dataclass(frozen=True, slots=True)
class Header:
    """`parent` is the digest of the delta before; `tables` and `size` describe the shard after this one."""

    number: int
    chain: str
    parent: str
    attempt: Attempt
    base: Base
    tables: tuple[str, ...]
    size: int
    dropped: tuple[str, ...] = ()

    def encoded(self) -> bytes:
        data = json.dumps(asdict(self), sort_keys=True).encode()
        return _HEAD.pack(_MAGIC, len(data)) + data

    @classmethod
    def of_json(cls, found: dict[str, Any]) -> Header:
        return cls(
            int(found["number"]),
            str(found["chain"]),
            str(found["parent"]),
            Attempt(*found["attempt"]),
            Base(**found["base"]),
            tuple(found["tables"]),
            int(found["size"]),
            tuple(found["dropped"]),
        )


@dataclass(frozen=True, slots=True)
class Delta:
    """One link of the chain; `length` is that of the object."""

    header: Header
    digest: str
    length: int
    writes: Sequence[tuple[str, list[Row]]] = field(repr=False)
    removals: Sequence[tuple[str, list[bytes]]] = field(repr=False)

    @property
    def position(self) -> Position:
        return Position(self.header.number, self.header.chain, self.digest)

    def follows(self, position: Position) -> bool:
        header = self.header
        return (header.number, header.chain, header.parent) == (position.number + 1, position.chain, position.digest)

    @property
    def cells(self) -> int:
        return sum(len(rows) for _, rows in self.writes) + sum(len(keys) for _, keys in self.removals)

    @property
    def base(self) -> Base:
        """Return the base of what comes after it."""
        base = self.header.base
        return Base(base.number, base.name, base.cells_since + self.cells, base.bytes_since + self.length)


def encode_cells(writes: Sequence[tuple[str, list[Row]]], removals: Sequence[tuple[str, list[bytes]]]) -> bytes:
    """Encode the body of a delta."""
    sink = pa.BufferOutputStream()
    tables = sorted({table for table, _ in [*writes, *removals]})
    numbers = {table: number for number, table in enumerate(tables)}
    few = sum(len(rows) for _, rows in writes) + sum(len(keys) for _, keys in removals) < _FEW
    with pa.ipc.new_stream(sink, SCHEMA, options=PLAIN if few else OPTIONS) as writer:
        for table, keys in removals:
            writer.write_batch(cell_batch(tables, numbers[table], [(key, None) for key in keys]))
        for table, rows in writes:
            writer.write_batch(cell_batch(tables, numbers[table], rows))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode_delta(data: bytes) -> Delta:
    """Decode a delta; raise `DeltaUnreadable` if it is damaged."""
    try:
        magic, length = _HEAD.unpack_from(data)
        if magic != _MAGIC:
            raise DeltaUnreadable("it does not start like one")
        header = Header.of_json(json.loads(data[_HEAD.size : _HEAD.size + length]))
        writes: list[tuple[str, list[Row]]] = []
        removals: list[tuple[str, list[bytes]]] = []
        with pa.ipc.open_stream(pa.py_buffer(data)[_HEAD.size + length :]) as reader:
            for table, rows in cell_rows(reader):
                if rows[0][1] is None:
                    removals.append((table, [key for key, _ in rows]))
                else:
                    writes.append((table, rows))  # type: ignore[arg-type]
    except (struct.error, ValueError, KeyError, TypeError, pa.ArrowException, OSError) as error:
        raise DeltaUnreadable(str(error)) from error
    return Delta(header, digest_of(data), len(data), writes, removals)


def digest_of(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
