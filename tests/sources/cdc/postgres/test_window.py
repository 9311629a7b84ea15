"""A chunk of a snapshot is merged with what was streamed while it was read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from potok.sources.cdc.envelopes.changes import UNAVAILABLE, Row
from potok.sources.cdc.envelopes.shape import Shape
from potok.sources.cdc.landing.chunks import Chunk
from potok.sources.cdc.landing.window import Window
from potok.sources.cdc.postgres.chunks import VisibleTransactions
from potok.sources.cdc.postgres.server import column_of
from potok.sources.cdc.postgres.types import PostgresType
from potok.topology.capture import Capture

CAPTURE = Capture(url="postgresql://host/shop", tables=("users",))
SHAPE = Shape(
    "public",
    "users",
    tuple(
        column_of(name, PostgresType(0, -1, type_), CAPTURE, key=name == "id")
        for name, type_ in (("id", "int4"), ("name", "text"), ("note", "text"))
    ),
)
SEEN, UNSEEN = 5, 20


def chunk(visible: str = "10:15:12") -> Chunk:
    columns = [pa.array(["1", "2", "3"]), pa.array(["a", "b", "c"]), pa.array(["long a", "long b", None])]
    return Chunk("x", SHAPE, columns, VisibleTransactions.of(visible), ("3",), ("3",), True, 0)


def merged(*changes: tuple[int, int, Row | None], truncated_by: int | None = None) -> list[tuple[str | None, ...]]:
    window = Window("public.users")
    for xid, number, row in changes:
        window.add(xid, (b"%d" % number,), row)
    if truncated_by is not None:
        window.truncated_by.append(truncated_by)
    return list(zip(*[column.to_pylist() for column in window.merge(chunk()).columns], strict=True))


A, B, C = ("1", "a", "long a"), ("2", "b", "long b"), ("3", "c", None)


@pytest.mark.parametrize(
    ("xid", "seen"), [(3, True), (9, True), (12, False), (14, True), (15, False), (2**32 - 1, True)]
)
def test_a_chunk_sees_what_was_committed_before_it(xid: int, seen: bool) -> None:
    assert VisibleTransactions.of("10:15:12").sees(xid) is seen


def test_transaction_ids_wrap_around() -> None:
    visible = VisibleTransactions.of(f"{2**33 + 1}:{2**33 + 5}:{2**33 + 2}")
    assert [visible.sees(xid) for xid in (2**32 - 5, 1, 2, 4, 5, 100)] == [True, True, False, True, False, False]


def test_rows_that_nothing_newer_has_touched_stay() -> None:
    assert merged((SEEN, 1, (b"1", b"old", b"old"))) == [A, B, C]


def test_rows_that_a_newer_change_has_replaced_or_deleted_go() -> None:
    assert merged((UNSEEN, 1, (b"1", b"new", b"n")), (UNSEEN, 3, None)) == [B]


def test_a_value_that_a_newer_change_did_not_send_is_that_of_the_chunk() -> None:
    assert merged((UNSEEN, 1, (b"1", b"new", UNAVAILABLE))) == [B, C, ("1", "new", "long a")]


def test_the_last_of_several_changes_counts_with_what_those_before_it_sent() -> None:
    changes: list[tuple[int, int, Row | None]] = [
        (UNSEEN, 1, (b"1", b"n1", b"note 1")),
        (UNSEEN, 1, (b"1", b"n2", UNAVAILABLE)),
    ]
    assert merged(*changes) == [B, C]
    assert merged((UNSEEN, 1, (b"1", b"n1", UNAVAILABLE)), (UNSEEN, 1, None)) == [B, C]


def test_a_newer_truncate_removes_all_rows() -> None:
    assert merged(truncated_by=UNSEEN) == []
    assert merged(truncated_by=SEEN) == [A, B, C]
