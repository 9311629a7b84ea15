"""Positions in the log and their text."""

from __future__ import annotations

import pytest

from potok.records.position import MOST_PARTITIONS, BadPosition, Position


def test_a_position_reads_its_own_text() -> None:
    position = Position({"orders": {1: 17, 0: 42}, "a.b-c_d": {0: 1}})
    assert str(position) == "a.b-c_d:0:1,orders:0:42,orders:1:17"
    assert Position.parse(str(position)) == position


def test_the_highest_offset_of_a_partition_counts() -> None:
    assert Position.parse("t:0:5, t:0:9,t:0:7") == Position({"t": {0: 9}})
    assert Position({"t": {0: 5}}) | Position({"t": {0: 3, 1: 2}}) == Position({"t": {0: 5, 1: 2}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "orders",
        "orders:0",
        "orders:0:-1",
        "orders:0:1:2",
        "orders:0:1;x",
        "or ders:0:1",
        "orders:0:٣",
        "orders:0:1e3",
        "orders:0:" + "9" * 30,
        "\x00:0:1",
        ",".join(f"t:{n}:1" for n in range(MOST_PARTITIONS + 1)),
        "x" * 100_000,
    ],
)
def test_another_text_is_not_a_position(text: str) -> None:
    with pytest.raises(BadPosition):
        Position.parse(text)


def test_a_position_is_reached_by_offsets_at_or_after_it_in_every_partition() -> None:
    position = Position({"t": {0: 3, 1: 1}})
    assert position.is_reached({"t": {0: 3, 1: 5}, "other": {0: 0}})
    assert not position.is_reached({"t": {0: 9, 1: 0}})
    assert not position.is_reached({"t": {0: 9}})
    assert Position().is_reached({})


def test_how_far_a_reader_is_does_not_exceed_the_position() -> None:
    assert Position({"t": {0: 3, 1: 4}, "u": {0: 1}}).reached({"t": {0: 9, 1: 2}}) == Position(
        {"t": {0: 3, 1: 2}, "u": {0: 0}}
    )
