"""Which fields are decoded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.dsl.stream import Stream
from potok.topology.inference.infer import infer
from potok.topology.nodes.windows import tumbling
from potok.topology.pruning import used_fields

VALUE = "a string, b string, c double, d bigint"


def used(build: Callable[[Stream], object], **options: object) -> set[str] | None:
    builder = StreamsBuilder("q")
    build(builder.stream("t", value=VALUE, **options))  # type: ignore[arg-type]
    topology = builder.build()
    return used_fields(topology, infer(topology))[topology.sources[0]]


@pytest.mark.parametrize(
    ("build", "fields"),
    [
        (lambda s: s.group_by_key().count(), set()),
        (lambda s: s.group_by("a").count(), {"a"}),
        (lambda s: s.group_by("a").sum("c"), {"a", "c"}),
        (lambda s: s.filter(lambda v: v["b"] == "x").group_by("a").avg("c"), {"a", "b", "c"}),
        (lambda s: s.group_by("a").aggregate(0.0, lambda k, v, agg: agg + v["c"]), {"a", "c"}),
        (lambda s: s.group_by("a").windowed_by(tumbling(10)).max("d"), {"a", "d"}),
        (lambda s: s.group_by("a").latest("b"), {"a", "b"}),
        (lambda s: s.map_values(lambda v: {"x": v["a"]}).to("out"), {"a"}),
        (lambda s: s.map_values(lambda v: v["c"] * 2).group_by_key().sum(), {"c"}),
        (lambda s: s.map_values(lambda v: {**v, "x": 1}).to("out"), {"a", "b", "c", "d"}),
        (lambda s: s.filter(lambda v: v["b"] == "x").to("out"), {"b"}),
        (lambda s: s.branch(lambda v: v["a"] == "x", lambda v: v["b"] == "y")[0].to("out"), {"a", "b"}),
    ],
)
def test_only_what_is_read_is_decoded(build: Callable[[Stream], object], fields: set[str]) -> None:
    assert used(build) == fields


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.filter(lambda v: len(repr(v)) > 0).to("out"),
        lambda s: s.peek(print).group_by_key().count(),
        lambda s: s.group_by_key().latest(),
        lambda s: s.group_by_key().reduce(lambda a, b: b),
        lambda s: s.group_by_key().aggregate([], lambda v, agg: [*agg, v]),
        lambda s: s.to_table(),
        lambda s: s.repartition().group_by_key().count(),
        lambda s: s.flat_map_values(lambda v: [v]).to("out"),
        lambda s: s.foreach(print),
    ],
)
def test_a_step_that_may_look_at_anything_gets_everything(build: Callable[[Stream], object]) -> None:
    assert used(build) is None


def test_the_event_time_field_is_decoded() -> None:
    assert used(lambda s: s.group_by("a").count(), timestamp="d") == {"a", "d"}


def test_bytes_that_pass_through_are_not_decoded() -> None:
    assert used(lambda s: s.to("out")) == set()


@pytest.mark.parametrize("format_name", ["delimited", "text", "raw"])
def test_a_sink_that_writes_another_format_needs_everything(format_name: str) -> None:
    assert used(lambda s: s.filter(lambda v: v["a"] == "x").to("out", value_format=format_name)) is None


def test_a_table_keeps_all_fields_of_its_topic() -> None:
    builder = StreamsBuilder("q")
    builder.table("t", value=VALUE).filter(lambda v: v["a"] == "x")
    topology = builder.build()
    assert used_fields(topology, infer(topology))[topology.sources[0]] is None


def test_fields_are_followed_through_a_merge() -> None:
    builder = StreamsBuilder("q")
    one, two = builder.stream("one", value=VALUE), builder.stream("two", value=VALUE)
    one.merge(two).group_by("a").sum("c")
    two.group_by("b").count()
    topology = builder.build()
    inferred = infer(topology)
    assert used_fields(topology, inferred)[topology.node("one")] == {"a", "c"}
    assert used_fields(topology, inferred)[topology.node("two")] == {"a", "b", "c"}


def test_streams_of_other_types_merge_with_all_their_fields() -> None:
    builder = StreamsBuilder("q")
    one, two = builder.stream("one", value=VALUE), builder.stream("two", value="a string")
    one.merge(two).group_by_key().count()
    topology = builder.build()
    assert used_fields(topology, infer(topology))[topology.node("one")] is None
