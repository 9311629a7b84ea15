"""A comparison that finds nothing would let everything pass."""

from __future__ import annotations

from tests.oracle import DeadLetter, Expected, Output, Position, Written
from tests.properties.compare import differences, same


def stream(*records: tuple[str | None, object, int]) -> Expected:
    written = [Written(key, value, Position("in", 0, offset)) for key, value, offset in records]
    return Expected(topics={"out": Output(False, written)})


def changelog(*records: tuple[str, object]) -> Expected:
    written = [Written(key, value, Position("in", 0, 0)) for key, value in records]
    return Expected(topics={"out": Output(True, written)})


def test_floats_may_be_rounded_but_types_are_kept() -> None:
    assert same({"a": [0.1 + 0.2]}, {"a": [0.3]})
    assert not same(1, 1.0)
    assert not same(True, 1)
    assert not same([1], [1, 2])
    assert not same({"a": None}, {})


def test_a_wrong_a_missing_and_a_needless_row_are_found() -> None:
    expected = Expected(tables={"t": {"a": 1, "b": None}})

    assert not differences(Expected(tables={"t": {"a": 1, "b": None}}), expected)
    assert differences(Expected(tables={"t": {"a": 2, "b": None}}), expected)
    assert differences(Expected(tables={"t": {"a": 1}}), expected)
    assert differences(Expected(tables={"t": {"a": 1, "b": None, "c": 1}}), expected)


def test_records_of_one_key_and_partition_keep_their_order() -> None:
    expected = stream(("a", 1, 0), ("a", 2, 1), ("b", 3, 2), (None, 4, 3), (None, 5, 4))

    assert not differences(stream(("b", 3, 2), ("a", 1, 0), (None, 5, 4), ("a", 2, 1), (None, 4, 3)), expected)
    assert differences(stream(("a", 2, 1), ("a", 1, 0), ("b", 3, 2), (None, 4, 3), (None, 5, 4)), expected)


def test_a_record_too_many_and_one_of_another_origin_are_found() -> None:
    expected = stream(("a", 1, 0))

    assert differences(stream(("a", 1, 0), ("a", 1, 0)), expected)
    assert differences(stream(("a", 1, 1)), expected)
    assert differences(stream(), expected)


def test_changelogs_are_compared_after_compaction() -> None:
    expected = changelog(("a", 1), ("a", 2), ("b", 1), ("b", None))

    assert not differences(changelog(("a", 2)), expected)
    assert differences(changelog(("a", 2), ("a", 1)), expected)
    assert differences(changelog(("a", 2), ("b", 1)), expected)


def test_dead_letters_are_compared_with_position_step_reason_and_bytes() -> None:
    def letter(offset: int = 0, step: str = "s", reason: str = "late", value: bytes = b"v") -> Expected:
        return Expected(dead_letters=[DeadLetter(Position("in", 0, offset), step, reason, None, value)])

    assert not differences(letter(), letter())
    for other in (letter(offset=1), letter(step="t"), letter(reason="error"), letter(value=b"w"), Expected()):
        assert differences(other, letter())
        assert differences(letter(), other)
