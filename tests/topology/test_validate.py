"""What must hold before anything runs."""

from __future__ import annotations

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.errors import TopologyError
from potok.topology.validate import (
    BadName,
    DuplicateName,
    EmptyTopology,
    NothingStored,
    ReadsItsOwnOutput,
    TopicReadTwoWays,
)


def place_of(error: TopologyError) -> str:
    assert error.at is not None
    return error.at.file


def test_a_topology_without_a_source_is_refused() -> None:
    with pytest.raises(EmptyTopology) as caught:
        StreamsBuilder("q").build()
    assert "builder.stream" in caught.value.hint


def test_a_topology_without_a_result_is_refused_with_the_location_of_its_source() -> None:
    builder = StreamsBuilder("q")
    builder.stream("a").filter(lambda v: True)
    with pytest.raises(NothingStored) as caught:
        builder.build()
    assert place_of(caught.value) == __file__ and ".to(" in caught.value.hint


@pytest.mark.parametrize("end", ["to", "foreach", "table", "count"])
def test_a_sink_an_action_or_a_table_is_a_result(end: str) -> None:
    builder = StreamsBuilder("q")
    if end == "table":
        builder.table("a")
    elif end == "count":
        builder.stream("a").group_by_key().count()
    elif end == "to":
        builder.stream("a").to("b")
    else:
        builder.stream("a").foreach(print)
    assert builder.build().name == "q"


def test_two_steps_of_one_name_are_refused_with_both_locations() -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("a").group_by_key()
    grouped.count(name="n")
    grouped.sum(name="n")
    with pytest.raises(DuplicateName, match='"n"') as caught:
        builder.build()
    assert place_of(caught.value) == __file__ and str(__file__) in caught.value.message
    assert "name=" in caught.value.hint


def test_two_aggregates_without_a_name_are_refused() -> None:
    builder = StreamsBuilder("q")
    grouped = builder.stream("a").group_by_key()
    grouped.count()
    grouped.count()
    with pytest.raises(DuplicateName):
        builder.build()


@pytest.mark.parametrize("name", ["", "a/b", "a b", "ä", "x" * 201, "../up"])
def test_a_query_name_that_cannot_be_a_path_is_refused(name: str) -> None:
    builder = StreamsBuilder(name)
    builder.stream("a").to("b")
    with pytest.raises(BadName):
        builder.build()


@pytest.mark.parametrize("name", [".", ".."])
def test_a_query_name_that_is_a_directory_above_is_refused(name: str) -> None:
    builder = StreamsBuilder(name)
    builder.stream("a").to("b")
    with pytest.raises(BadName):
        builder.build()


def test_a_table_name_that_cannot_be_a_path_is_refused_with_its_position() -> None:
    builder = StreamsBuilder("q")
    builder.stream("a").group_by_key().count(name="a/b")
    with pytest.raises(BadName, match='"a/b"') as caught:
        builder.build()
    assert place_of(caught.value) == __file__


def test_a_bad_topic_name_is_refused() -> None:
    builder = StreamsBuilder("q")
    builder.stream("a").to("no topic")
    with pytest.raises(BadName, match="topic"):
        builder.build()


def test_a_topic_that_is_read_and_written_is_refused() -> None:
    builder = StreamsBuilder("q")
    builder.stream("a").filter(lambda v: True).to("a")
    with pytest.raises(ReadsItsOwnOutput) as caught:
        builder.build()
    assert place_of(caught.value) == __file__


def test_the_dead_letters_of_a_query_are_not_its_input() -> None:
    builder = StreamsBuilder("q")
    builder.stream("q-dead-letters").to("b")
    with pytest.raises(ReadsItsOwnOutput):
        builder.build()


def test_a_topic_that_is_read_twice_is_refused() -> None:
    builder = StreamsBuilder("q")
    builder.stream("a").to("b")
    builder.table("a", name="t")
    with pytest.raises(TopicReadTwoWays) as caught:
        builder.build()
    assert "read it once" in caught.value.hint
