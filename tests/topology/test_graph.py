"""The graph of steps."""

from __future__ import annotations

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.topology.graph import Topology
from potok.topology.nodes import Filter, Sink, Window
from potok.topology.nodes.windows import hopping, session, sliding, tumbling


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


@pytest.mark.parametrize(
    ("window", "held_ms"),
    [
        (tumbling("10 s", grace="3 s"), 12_999),
        (hopping("10 s", "2 s"), 9_999),
        (sliding("10 s", grace="3 s"), 13_000),
        (session("10 s", grace="3 s"), 23_000),
        (session(timeout="10 s", from_first=True), 19_999),
    ],
)
def test_behind_final_results_the_watermark_is_held_back_as_long_as_one_may_be_held(
    window: Window, held_ms: int
) -> None:
    builder = StreamsBuilder("q")
    finals = builder.stream("in").group_by_key().windowed_by(window).count(name="w").filter(lambda v: v > 1)
    finals.emit_final().to_stream().to("out")
    assert held_back(builder.build(), "out") == held_ms


def test_joined_windows_are_held_as_long_as_those_with_the_longer_grace() -> None:
    builder = StreamsBuilder("q")
    one, two = (
        builder.stream(topic).group_by_key().windowed_by(tumbling("10 s", grace=grace)).count()
        for topic, grace in (("one", "1 s"), ("two", "5 s"))
    )
    one.join(two, lambda a, b: a + b).emit_final().to_stream().to("out")
    assert held_back(builder.build(), "out") == 14_999


@pytest.mark.parametrize(("verb", "held_ms"), [("join", 0), ("left_join", 4_000), ("outer_join", 4_000)])
def test_behind_a_join_the_watermark_is_held_back_if_it_lets_records_wait(verb: str, held_ms: int) -> None:
    builder = StreamsBuilder("q")
    one, two = builder.stream("one"), builder.stream("two")
    getattr(one, verb)(two, within=("1 s", "2 s"), grace="1 s").to("out")
    assert held_back(builder.build(), "out") == held_ms


def test_all_that_wait_one_after_the_other_hold_back_the_watermark() -> None:
    builder = StreamsBuilder("q")
    table = builder.table("rows")
    looked_up = builder.stream("in").ordered("1 s").join(table, lambda a, b: a, grace="2 s")
    looked_up.to("late")
    builder.stream("in2").join(table, lambda a, b: a).to("at-once")
    looked_up.group_by_key().count().emit_every("4 s").to_stream().to("later")
    topology = builder.build()
    assert [held_back(topology, topic) for topic in ("late", "at-once", "later")] == [3_000, 0, 6_999]


def held_back(topology: Topology, topic: str) -> int:
    return topology.held_back_ms(next(sink for sink in topology.of_type(Sink) if sink.topic == topic))
