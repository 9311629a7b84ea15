"""Messages of pgoutput, byte by byte as the documentation of PostgreSQL defines them."""

from __future__ import annotations

import struct

import pytest

from potok.sources.cdc.envelopes.changes import UNAVAILABLE
from potok.sources.cdc.postgres.pgoutput import (
    BadMessage,
    Begin,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Origin,
    Relation,
    RelationColumn,
    Truncate,
    Type,
    Update,
    decode,
)

A_SECOND = 1_000_000
EPOCH = 946_684_800 * A_SECOND


def text(value: bytes) -> bytes:
    return b"t" + struct.pack(">I", len(value)) + value


def row(*values: bytes) -> bytes:
    return struct.pack(">H", len(values)) + b"".join(values)


MESSAGES = {
    "begin": (b"B" + struct.pack(">QqI", 100, A_SECOND, 7), Begin(100, EPOCH + A_SECOND, 7)),
    "commit": (b"C" + struct.pack(">BQQq", 0, 100, 148, A_SECOND), Commit(100, 148, EPOCH + A_SECOND)),
    "relation": (
        b"R"
        + struct.pack(">I", 5)
        + b"public\0users\0d"
        + struct.pack(">H", 1)
        + b"\1id\0"
        + struct.pack(">Ii", 23, -1),
        Relation(5, "public", "users", "d", (RelationColumn("id", 23, -1, True),)),
    ),
    "a relation of the catalog": (
        b"R" + struct.pack(">I", 5) + b"\0pg_class\0n" + struct.pack(">H", 0),
        Relation(5, "pg_catalog", "pg_class", "n", ()),
    ),
    "type": (b"Y" + struct.pack(">I", 9) + b"public\0mood\0", Type(9, "public", "mood")),
    "insert": (b"I" + struct.pack(">I", 5) + b"N" + row(text(b"1"), b"n", b"u"), Insert(5, (b"1", None, UNAVAILABLE))),
    "update": (b"U" + struct.pack(">I", 5) + b"N" + row(text(b"1")), Update(5, (b"1",), None, False)),
    "update of the key": (
        b"U" + struct.pack(">I", 5) + b"K" + row(text(b"1"), b"n") + b"N" + row(text(b"2"), text(b"")),
        Update(5, (b"2", b""), (b"1", None), True),
    ),
    "update with the row before": (
        b"U" + struct.pack(">I", 5) + b"O" + row(text(b"1")) + b"N" + row(text(b"2")),
        Update(5, (b"2",), (b"1",), False),
    ),
    "delete by key": (b"D" + struct.pack(">I", 5) + b"K" + row(text(b"1")), Delete(5, (b"1",), True)),
    "delete of a row": (b"D" + struct.pack(">I", 5) + b"O" + row(text(b"1")), Delete(5, (b"1",), False)),
    "truncate": (b"T" + struct.pack(">IBII", 2, 3, 5, 6), Truncate((5, 6), True, True)),
    "origin": (b"O" + struct.pack(">Q", 77) + b"other\0", Origin(77, "other")),
    "message": (
        b"M" + struct.pack(">BQ", 1, 88) + b"potok\0" + struct.pack(">I", 2) + b"hi",
        LogicalMessage(True, 88, "potok", b"hi"),
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_decoded(name: str) -> None:
    data, expected = MESSAGES[name]
    assert decode(data) == expected


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_that_is_cut_off_is_an_error_and_never_another_message(name: str) -> None:
    data, expected = MESSAGES[name]
    for length in range(len(data)):
        try:
            found = decode(data[:length])
        except BadMessage:
            continue
        assert found == expected, length


def test_a_message_of_a_later_protocol_is_an_error() -> None:
    with pytest.raises(BadMessage, match="unknown kind b'S'"):
        decode(b"S\0\0\0\1\1")
    with pytest.raises(BadMessage, match=r"cannot be read|unknown kind"):
        decode(b"I" + struct.pack(">I", 5) + b"N" + struct.pack(">H", 1) + b"b\0\0\0\1x")
