"""The ends of the output of committed batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from potok.records.position import Position
from potok.state.output_history import MOST_BATCHES, MOST_OFFSETS, OutputHistory


def at(end: int) -> Position:
    return Position({"out": {0: end}})


def test_a_position_is_followed_to_the_output_of_the_batch_that_read_it() -> None:
    history = OutputHistory().after(1, {"in": {0: 10}}, at(3)).after(2, {"in": {0: 20}}, at(5))
    assert history.written_by(Position({"in": {0: 7}})) == at(3)
    assert history.written_by(Position({"in": {0: 11}})) == at(5)
    assert history.written_by(Position({"in": {0: 21}})) is None


def test_output_ends_of_other_partitions_are_remembered() -> None:
    history = OutputHistory().after(1, {"in": {0: 10}}, at(3)).after(2, {"in": {0: 20}}, Position({"out": {1: 9}}))
    assert history.written_by(Position({"in": {0: 20}})) == Position({"out": {0: 3, 1: 9}})


def test_a_batch_without_output_replaces_the_one_before() -> None:
    history = OutputHistory().after(1, {"in": {0: 10}}, at(3)).after(2, {"in": {0: 20}}, Position())
    assert [known.batch for known in history.batches] == [2]
    assert history.written_by(Position({"in": {0: 4}})) == at(3)


def test_batches_before_a_reset_of_the_offsets_do_not_count() -> None:
    history = OutputHistory().after(1, {"in": {0: 10}}, at(3)).after(2, {"in": {0: 4}}, at(5))
    assert history.written_by(Position({"in": {0: 3}})) == at(5)
    assert history.written_by(Position({"in": {0: 10}})) is None


def test_a_history_is_the_same_after_it_was_stored() -> None:
    history = OutputHistory().after(1, {"in": {0: 10, 11: 3}}, at(3)).after(2, {"in": {0: 20, 11: 3}}, at(5))
    assert OutputHistory.of_bytes(history.to_bytes()) == history
    assert OutputHistory.of_bytes(None) == OutputHistory()


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=300))
def test_a_thinned_history_never_promises_less_output_than_there_was(steps: list[tuple[int, int]]) -> None:
    read = written = 0
    true: list[tuple[int, int]] = []
    history = OutputHistory()
    for batch, (more, output) in enumerate(steps, 1):
        read, written = read + more, written + output
        true.append((read, written))
        history = history.after(batch, {"in": {0: read}}, at(written) if written else Position())
    for position in range(1, read + 1):
        exact = next(end for upto, end in true if upto >= position)
        found = history.written_by(Position({"in": {0: position}}))
        assert found is not None
        assert found.topics.get("out", {}).get(0, 0) >= exact


def test_a_long_history_is_bounded_and_exact_for_the_last_batches() -> None:
    history = OutputHistory()
    for batch in range(1, 5_001):
        history = history.after(batch, {"in": {0: batch}}, at(batch))
    assert len(history.batches) <= MOST_BATCHES
    assert history.written_by(Position({"in": {0: 4_997}})) == at(4_997)
    for ago in (100, 1_000, 4_000):
        found = history.written_by(Position({"in": {0: 5_000 - ago}}))
        assert found is not None
        assert found.topics["out"][0] <= 5_000 - ago // 4


def test_a_query_with_many_partitions_remembers_fewer_batches() -> None:
    history = OutputHistory()
    for batch in range(1, 60):
        ends = dict.fromkeys(range(900), batch)
        history = history.after(batch, {"in": ends}, Position({"out": ends}))
    assert sum(known.size for known in history.batches) <= MOST_OFFSETS
    assert history.batches[-1].batch == 59
