"""Cells as bytes, one by one and as arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.state.cell import (
    Cell,
    CorruptCell,
    decode_cell,
    decode_fixed,
    encode_cell,
    encode_cells,
    encode_fixed,
    values_before,
)
from potok.state.fence import Attempt, Fence

maybe_bytes = st.none() | st.binary(max_size=50)
NUMBERS = np.dtype([("a", "<i8"), ("b", "<f8")])
FENCE = Fence(Attempt(2, 5))


def numbers(*rows: tuple[int, float]) -> np.ndarray:
    return np.array(list(rows), NUMBERS)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**63), maybe_bytes, maybe_bytes, st.binary(max_size=20))
def test_a_cell_survives_encoding(epoch: int, batch: int, new: bytes | None, old: bytes | None, key: bytes) -> None:
    data = encode_cell(Attempt(epoch, batch), new, old, key)
    assert decode_cell(data) == Cell(epoch, batch, new, old, key or None)


def test_an_empty_value_is_not_a_missing_one() -> None:
    assert decode_cell(encode_cell(Attempt(1, 1), b"", None)).new == b""


@pytest.mark.parametrize("place", [0, 3, 10, 30, -1])
def test_a_flipped_bit_is_detected(place: int) -> None:
    data = bytearray(encode_cell(Attempt(1, 1), b"value", b"before", b"key"))
    data[place] ^= 1
    with pytest.raises(CorruptCell, match='"counts"'):
        decode_cell(bytes(data), "counts", b"k")


@pytest.mark.parametrize("length", [0, 4, 31])
def test_a_truncated_cell_is_corrupt(length: int) -> None:
    with pytest.raises(CorruptCell):
        decode_cell(encode_cell(Attempt(1, 1), b"value", None)[:length])


def test_fixed_cells_are_ordinary_cells() -> None:
    new, old = numbers((1, 1.5), (2, 2.5)), numbers((0, 0.0), (7, 7.5))
    cells = encode_fixed(Attempt(2, 4), new, None, old, np.array([False, True]))
    assert [decode_cell(cell) for cell in cells] == [
        Cell(2, 4, new[0].tobytes(), None),
        Cell(2, 4, new[1].tobytes(), old[1].tobytes()),
    ]


def test_what_was_committed_counts_and_what_this_attempt_wrote_does_not() -> None:
    new, old, existed = numbers((1, 1.0)), numbers((7, 7.0)), np.array([True])
    (committed,) = encode_fixed(Attempt(2, 4), new, None, old, existed)
    (mine,) = encode_fixed(Attempt(2, 5), new, None, old, existed)
    values, exists = decode_fixed([committed, None, mine], NUMBERS, FENCE, "t")
    assert exists.tolist() == [True, False, True]
    assert values["a"].tolist()[::2] == [1, 7]


def test_a_deleted_cell_of_fixed_width_does_not_exist() -> None:
    row = numbers((1, 1.0))
    (deleted,) = encode_fixed(Attempt(2, 4), row, np.array([False]), row, np.array([True]))
    assert not decode_fixed([deleted], NUMBERS, FENCE, "t")[1].any()
    assert decode_fixed([deleted], NUMBERS, Fence(Attempt(2, 4)), "t")[1].all()


def test_each_epoch_and_batch_is_judged_separately() -> None:
    fence = Fence(Attempt(4, 9), {3: 6})
    attempts = [Attempt(1, 8), Attempt(3, 6), Attempt(3, 7), Attempt(4, 8), Attempt(4, 9), Attempt(5, 1)]
    cells = [encode_fixed(a, numbers((1, 0.0)), None, numbers((0, 0.0)), np.array([True]))[0] for a in attempts]
    values, _ = decode_fixed(cells, NUMBERS, fence, "t")
    assert values["a"].tolist() == [1, 1, 0, 1, 0, 0]


def test_a_flipped_bit_in_a_fixed_cell_is_detected() -> None:
    row = numbers((1, 1.0))
    (cell,) = encode_fixed(Attempt(1, 1), row, None, row, np.array([True]))
    broken = bytearray(cell)
    broken[40] ^= 1
    with pytest.raises(CorruptCell):
        decode_fixed([bytes(broken)], NUMBERS, FENCE, "t")


def test_a_fixed_cell_of_another_width_is_corrupt() -> None:
    with pytest.raises(CorruptCell):
        decode_fixed([encode_cell(Attempt(1, 1), b"short", None)], NUMBERS, FENCE, "t")


def test_no_cells_decode_to_no_values() -> None:
    values, exists = decode_fixed([], NUMBERS, FENCE, "t")
    assert len(values) == len(exists) == 0


@pytest.mark.parametrize("times", [1, 50])
@pytest.mark.parametrize("length", [0, 4, 31, 36])
def test_one_truncated_cell_among_many_is_corrupt(length: int, times: int) -> None:
    whole = encode_cell(Attempt(1, 1), b"value", None)
    with pytest.raises(CorruptCell):
        values_before([*[whole] * times, None, whole[:length]], FENCE, "t")


@pytest.mark.parametrize("place", [0, 4, 20, 33])
def test_a_flipped_bit_among_many_cells_is_detected(place: int) -> None:
    whole = encode_cell(Attempt(1, 1), b"value", None)
    broken = bytearray(whole)
    broken[place] ^= 1
    with pytest.raises(CorruptCell):
        values_before([*[whole] * 50, bytes(broken)], FENCE, "t")


@pytest.mark.parametrize("times", [1, 50])
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(3, 6), maybe_bytes, maybe_bytes, st.binary(max_size=9))))
def test_many_cells_are_decoded_like_single_cells(
    times: int, rows: list[tuple[int, int, bytes | None, bytes | None, bytes]]
) -> None:
    fence = Fence(Attempt(2, 5), {1: 4})
    cells = [encode_cell(Attempt(epoch, batch), new, old, key) for epoch, batch, new, old, key in rows]
    one_by_one = [None, *[decode_cell(cell).before(fence) for cell in cells]]
    assert values_before([None, *cells] * times, fence, "t") == one_by_one * times


def test_many_cells_are_encoded_like_single_cells() -> None:
    attempt = Attempt(3, 1 << 40)
    rows = [(b"new", b"old", b""), (None, b"", b"key"), (b"", None, b""), (b"x" * 300, b"y", b"k" * 500)]
    new, old, keys = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    assert encode_cells(attempt, new, old, keys) == [encode_cell(attempt, *row) for row in rows]
    assert encode_cells(attempt, [], []) == []
