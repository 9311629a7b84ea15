"""Decode the messages of pgoutput, the built-in plugin of logical replication.

Protocol version 1, which PostgreSQL 14 to 18 speak: each transaction arrives whole, after its commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import TypeAlias

from potok.sources.cdc.envelopes.changes import UNAVAILABLE, Row, Value

EPOCH_2000_US = 946_684_800_000_000


class BadMessage(ValueError):
    """Bytes that are not a message of the protocol."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The start of a transaction. Its changes follow without those of others; `lsn` is that of its commit record."""

    lsn: int
    commit_us: int
    """Microseconds since 1970."""
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The end of a transaction. Replication that starts at `end_lsn` sends the transactions after it."""

    lsn: int
    end_lsn: int
    commit_us: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    name: str
    type_oid: int
    modifier: int
    identity: bool
    """Whether it is part of the replica identity."""


@dataclass(frozen=True, slots=True)
class Relation:
    """The columns of a table. Sent before its first change, and after they have changed."""

    oid: int
    schema: str
    table: str
    identity: str
    """`d` for the primary key, `i` for an index, `f` for the whole row, `n` for nothing."""
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Type:
    """The name of a type that is not built in."""

    oid: int
    schema: str
    name: str


@dataclass(frozen=True, slots=True)
class Insert:
    relation: int
    row: Row


@dataclass(frozen=True, slots=True)
class Update:
    """`old` is None unless the replica identity has changed or is the whole row; see `old_is_key`."""

    relation: int
    row: Row
    old: Row | None
    old_is_key: bool
    """Whether `old` has the columns of the replica identity only; the others are null."""


@dataclass(frozen=True, slots=True)
class Delete:
    relation: int
    old: Row
    old_is_key: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    relations: tuple[int, ...]
    cascade: bool
    restart_identity: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """The server on which the transaction was committed first."""

    lsn: int
    name: str


@dataclass(frozen=True, slots=True)
class LogicalMessage:
    """What `pg_logical_emit_message` wrote."""

    transactional: bool
    lsn: int
    prefix: str
    content: bytes


Message: TypeAlias = "Begin | Commit | Relation | Type | Insert | Update | Delete | Truncate | Origin | LogicalMessage"

_BEGIN, _COMMIT = Struct(">QqI"), Struct(">BQQq")
_U16, _U32, _U64 = Struct(">H"), Struct(">I"), Struct(">Q")
_COLUMN = Struct(">Ii")
_MESSAGE = Struct(">BQ")
_TEXT, _NULL, _UNCHANGED = ord("t"), ord("n"), ord("u")


def decode(data: bytes) -> Message:
    """Return the message in the payload of one replication message."""
    kind = data[:1]
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise BadMessage(f"pgoutput sent a message of unknown kind {kind!r}")
    try:
        return decoder(data)
    except (IndexError, ValueError, OverflowError) as error:
        raise BadMessage(f"pgoutput sent a message of kind {kind!r} that cannot be read: {error}") from error


def _begin(data: bytes) -> Begin:
    lsn, commit_us, xid = _read(_BEGIN, data, 1)
    return Begin(lsn, commit_us + EPOCH_2000_US, xid)


def _commit(data: bytes) -> Commit:
    _flags, lsn, end_lsn, commit_us = _read(_COMMIT, data, 1)
    return Commit(lsn, end_lsn, commit_us + EPOCH_2000_US)


def _relation(data: bytes) -> Relation:
    (oid,) = _read(_U32, data, 1)
    schema, at = _string(data, 5)
    table, at = _string(data, at)
    identity = chr(data[at])
    (count,) = _read(_U16, data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        name, at = _string(data, at + 1)
        type_oid, modifier = _read(_COLUMN, data, at)
        at += _COLUMN.size
        columns.append(RelationColumn(name, type_oid, modifier, bool(flags & 1)))
    # pg_catalog is sent as an empty name.
    return Relation(oid, schema or "pg_catalog", table, identity, tuple(columns))


def _type(data: bytes) -> Type:
    (oid,) = _read(_U32, data, 1)
    schema, at = _string(data, 5)
    name, _ = _string(data, at)
    return Type(oid, schema or "pg_catalog", name)


def _insert(data: bytes) -> Insert:
    (relation,) = _read(_U32, data, 1)
    _expect(data, 5, "N")
    row, _ = _row(data, 6)
    return Insert(relation, row)


def _update(data: bytes) -> Update:
    (relation,) = _read(_U32, data, 1)
    kind, at, old = data[5], 5, None
    if kind in b"KO":
        old, at = _row(data, 6)
    _expect(data, at, "N")
    row, _ = _row(data, at + 1)
    return Update(relation, row, old, kind == ord("K"))


def _delete(data: bytes) -> Delete:
    (relation,) = _read(_U32, data, 1)
    if data[5] not in b"KO":
        raise BadMessage(f"a delete has no row before it but {data[5:6]!r}")
    old, _ = _row(data, 6)
    return Delete(relation, old, data[5] == ord("K"))


def _truncate(data: bytes) -> Truncate:
    (count,) = _read(_U32, data, 1)
    options = data[5]
    relations = tuple(_read(_U32, data, 6 + 4 * index)[0] for index in range(count))
    return Truncate(relations, bool(options & 1), bool(options & 2))


def _origin(data: bytes) -> Origin:
    (lsn,) = _read(_U64, data, 1)
    return Origin(lsn, _string(data, 9)[0])


def _message(data: bytes) -> LogicalMessage:
    flags, lsn = _read(_MESSAGE, data, 1)
    prefix, at = _string(data, 1 + _MESSAGE.size)
    (length,) = _read(_U32, data, at)
    content = data[at + 4 : at + 4 + length]
    if len(content) != length:
        raise BadMessage("a logical message is cut off")
    return LogicalMessage(bool(flags & 1), lsn, prefix, content)


def _row(data: bytes, at: int) -> tuple[Row, int]:
    """Return the values of a row, and where they end. Each is called for every change, so there is no further call."""
    values: list[Value] = []
    append = values.append
    count = data[at] << 8 | data[at + 1]
    at += 2
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            start = at + 5
            at = start + int.from_bytes(data[at + 1 : start], "big")
            append(data[start:at])
        elif kind == _NULL:
            append(None)
            at += 1
        elif kind == _UNCHANGED:
            append(UNAVAILABLE)
            at += 1
        else:
            raise BadMessage(f"a value is of unknown kind {bytes([kind])!r}")
    if at > len(data):
        raise BadMessage("a row is cut off")
    return tuple(values), at


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def _read(form: Struct, data: bytes, at: int) -> tuple[int, ...]:
    if at + form.size > len(data):
        raise BadMessage("the message is cut off")
    return form.unpack_from(data, at)


def _expect(data: bytes, at: int, kind: str) -> None:
    if data[at] != ord(kind):
        raise BadMessage(f"{data[at : at + 1]!r} instead of {kind!r} at byte {at}")


_DECODERS: dict[bytes, Callable[[bytes], Message]] = {
    b"B": _begin,
    b"C": _commit,
    b"R": _relation,
    b"Y": _type,
    b"I": _insert,
    b"U": _update,
    b"D": _delete,
    b"T": _truncate,
    b"O": _origin,
    b"M": _message,
}
