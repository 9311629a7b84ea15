"""The camelCase spellings."""

from __future__ import annotations

import copy

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.dsl.camel_case import AGGREGATES, ALIASES
from potok.dsl.grouping.grouped_stream import GroupedStream, WindowedStream
from potok.dsl.stream import Stream
from potok.dsl.table import Table

HANDLES = (StreamsBuilder, Stream, GroupedStream, WindowedStream, Table)


def test_every_alias_names_a_verb_of_some_handle() -> None:
    assert [alias for alias, verb in ALIASES.items() if not any(hasattr(kind, verb) for kind in HANDLES)] == []


def test_the_program_of_the_seeds_runs_in_its_own_spelling() -> None:
    builder = StreamsBuilder("q")
    orders = builder.stream("orders")
    orders.filterNot(lambda v: v).flatMap(lambda k, v: []).mapValues(lambda v: v).selectKey("a").to("out")
    orders.groupBy("a").count(name="n").toStream().flatMapValues(lambda v: [v]).forEach(print)
    orders.groupByKey().collectList("a", name="l").mapValues(lambda v: v)
    orders.groupByKey().countDistinct("a", name="d")
    orders.toTable(name="t")
    assert [node.name for node in builder.build().tables] == ["n", "l", "d", "t"]


def test_an_alias_works_only_where_its_verb_does() -> None:
    table = StreamsBuilder("q").table("users")
    with pytest.raises(AttributeError, match="a Table has no groupByKey"):
        table.groupByKey()


def test_a_misspelt_verb_is_answered_with_the_right_one() -> None:
    with pytest.raises(AttributeError, match="did you mean map_values"):
        StreamsBuilder("q").stream("a").map_vlaues(lambda v: v)


def test_a_verb_that_is_nothing_like_any_is_answered_with_all_of_them() -> None:
    with pytest.raises(AttributeError, match=r"it has: .*to_stream"):
        StreamsBuilder("q").table("a").zzz()


def test_private_names_are_not_suggested_and_handles_can_be_copied() -> None:
    stream = StreamsBuilder("q").stream("a")
    assert copy.copy(stream).node is stream.node


@pytest.mark.parametrize("verb", ["count", "sum", "aggregate", "reduce", "windowed_by", "windowedBy", "collectList"])
def test_an_aggregate_of_a_stream_that_is_not_grouped_says_to_group_it(verb: str) -> None:
    with pytest.raises(AttributeError, match=rf"no {verb}; group first: .group_by_key\(\) or .group_by\(...\)"):
        getattr(StreamsBuilder("q").stream("a"), verb)


def test_a_verb_of_another_handle_is_answered_with_the_way_there() -> None:
    table = StreamsBuilder("q").table("a")
    with pytest.raises(AttributeError, match=r"group its rows first"):
        table.count()
    with pytest.raises(AttributeError, match=r"make a stream of its changes first: .to_stream\(\)"):
        table.to("out")


def test_every_verb_that_lies_elsewhere_is_one_of_another_handle() -> None:
    grouped = {verb for verb in AGGREGATES if hasattr(GroupedStream, verb)}
    assert grouped == set(AGGREGATES)
    assert not any(hasattr(kind, verb) for kind in (Stream, Table) for verb in kind._elsewhere)
