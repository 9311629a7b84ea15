"""The graph of steps."""

from __future__ import annotations

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.topology.graph import Topology
from potok.topology.nodes import Filter, Sink


def small() -> Topology:
    builder = StreamsBuilder("q")
    one, two = builder.stream("one"), builder.stream("two")
    one.filter(lambda v: True, name="f").merge(two, name="m").to("out")
    builder.table("three", name="t").filter(lambda v: True)
    one.group_by_key().count(name="n")
    return builder.build()


def test_it_knows_its_topics_and_tables() -> None:
    topology = small()
    assert topology.source_topics == ["one", "three", "two"]
    assert topology.sink_topics == ["out"]
    assert [node.name for node in topology.tables] == ["t", "n"]
    assert topology.dead_letter_topic == "q-dead-letters"


def test_it_finds_steps_by_name_and_by_type() -> None:
    topology = small()
    assert isinstance(topology.node("f"), Filter)
    assert [sink.topic for sink in topology.of_type(Sink)] == ["out"]
    with pytest.raises(KeyError):
        topology.node("nothing")


def test_the_topics_that_reach_a_step_are_all_those_above_it() -> None:
    topology = small()
    assert topology.upstream_topics(topology.node("m")) == {"one", "two"}
    assert topology.upstream_topics(topology.node("n")) == {"one"}


def test_every_step_comes_after_its_upstreams() -> None:
    nodes = small().nodes
    assert all(nodes.index(upstream) < nodes.index(node) for node in nodes for upstream in node.upstreams)


def test_downstreams_are_the_reverse_of_upstreams() -> None:
    topology = small()
    assert [node.name for node in topology.downstreams(topology.node("one"))] == ["f", "n"]
