"""The verbs of a table."""

from __future__ import annotations

from potok.dsl.builder import StreamsBuilder
from potok.dsl.stream import Stream
from potok.dsl.table import Table
from potok.topology.nodes import TableFilter, TableMapValues


def counts() -> Table:
    return StreamsBuilder("q").stream("orders").group_by_key().count(name="n")


def test_a_filtered_table_is_kept_only_if_it_has_a_name() -> None:
    for make in (
        lambda name: counts().filter(lambda v: v > 1, name=name),
        lambda name: counts().filter_not(lambda v: v > 1, name=name),
        lambda name: counts().map_values(lambda v: v + 1, name=name),
    ):
        assert not make("").node.stateful
        assert make("kept").node.stateful
        assert make("").node.is_table


def test_verbs_add_the_nodes_of_tables() -> None:
    table = counts()
    node = table.filter_not(lambda k, v: v > 1).node
    assert isinstance(node, TableFilter) and node.negate
    mapped = table.map_values(lambda v: v, value=int).node
    assert isinstance(mapped, TableMapValues) and mapped.schema is not None
    assert node.at is not None and node.at.file == __file__


def test_a_table_becomes_a_stream() -> None:
    stream = counts().to_stream()
    assert isinstance(stream, Stream) and stream.node.name == "n.to_stream"
    assert not stream.node.is_table


def test_two_unnamed_filters_of_a_table_are_two_steps() -> None:
    table = counts()
    assert {table.filter(lambda v: v).name, table.filter(lambda v: v).name} == {"n.filter", "n.filter-2"}
