"""The verbs of a stream: each adds one node and returns a handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.dsl.grouping.grouped_stream import GroupedStream
from potok.dsl.stream import Stream
from potok.dsl.table import Table
from potok.duration import hours
from potok.errors import PotokError, TopologyError
from potok.expressions.function import WrongArity
from potok.topology.nodes import Branch, Filter, Map, MapValues, Merge, Sink


def orders() -> Stream:
    return StreamsBuilder("q").stream("orders")


def names(handle: Stream) -> list[str]:
    return [node.name for node in handle._graph.topology()]


@pytest.mark.parametrize(
    ("verb", "kind", "result"),
    [
        (lambda s: s.filter(lambda v: v), "filter", Stream),
        (lambda s: s.filter_not(lambda v: v), "filter", Stream),
        (lambda s: s.map(lambda k, v: (k, v)), "map", Stream),
        (lambda s: s.map_values(lambda v: v), "map_values", Stream),
        (lambda s: s.flat_map(lambda k, v: []), "flat_map", Stream),
        (lambda s: s.flat_map_values(lambda v: []), "flat_map_values", Stream),
        (lambda s: s.select_key("user"), "select_key", Stream),
        (lambda s: s.group_by("user"), "select_key", GroupedStream),
        (lambda s: s.peek(print), "peek", Stream),
        (lambda s: s.repartition(), "repartition", Stream),
        (lambda s: s.merge(s), "merge", Stream),
        (lambda s: s.to_table(), "to_table", Table),
        (lambda s: s.to("out"), "sink", type(None)),
        (lambda s: s.through("out"), "sink", Stream),
        (lambda s: s.foreach(print), "foreach", type(None)),
    ],
)
def test_a_verb_adds_a_node_that_knows_its_location(verb: Callable[[Stream], Any], kind: str, result: type) -> None:
    stream = orders()
    handle = verb(stream)
    node = stream._graph.topology().nodes[-1]
    assert node.kind == kind
    assert isinstance(handle, result)
    assert node.at is not None and node.at.file == __file__
    assert stream.node in node.upstreams


def test_filter_not_is_a_filter_turned_round() -> None:
    node = orders().filter_not(lambda v: v).node
    assert isinstance(node, Filter) and node.negate


def test_functions_may_take_the_key_or_not() -> None:
    one, two = orders().map_values(lambda v: v).node, orders().map_values(lambda k, v: v).node
    assert isinstance(one, MapValues) and isinstance(two, MapValues)
    assert (one.function.arity, two.function.arity) == (1, 2)


def test_a_function_of_three_arguments_is_refused_with_its_position() -> None:
    with pytest.raises(WrongArity) as caught:
        orders().filter(lambda a, b, c: True)
    assert caught.value.at is not None and caught.value.at.file == __file__


def test_declared_types_are_kept() -> None:
    node = orders().map(lambda k, v: (k, v), key=int, value="a string").node
    assert isinstance(node, Map)
    assert node.key_schema is not None and node.schema is not None


def test_a_type_that_cannot_be_used_is_refused_with_its_position() -> None:
    with pytest.raises(PotokError) as caught:
        orders().map_values(lambda v: v, value="a no_such_type")
    assert caught.value.at is not None and caught.value.at.file == __file__


def test_names_follow_the_path() -> None:
    stream = orders()
    stream.filter(lambda v: v).map_values(lambda v: v).to("out")
    assert names(stream) == [
        "orders",
        "orders.filter",
        "orders.filter.map_values",
        "orders.filter.map_values.to.out",
    ]


def test_steps_without_state_that_would_share_a_name_are_numbered() -> None:
    stream = orders()
    stream.filter(lambda v: v)
    stream.filter(lambda v: v)
    assert names(stream) == ["orders", "orders.filter", "orders.filter-2"]


def test_a_given_name_is_taken_as_it_is() -> None:
    assert orders().filter(lambda v: v, name="large").node.name == "large"


def test_a_derived_name_of_state_never_depends_on_a_count() -> None:
    """Two groupings swapped in the program would swap their states; the builder must ask for a name."""
    builder = StreamsBuilder("q")
    stream = builder.stream("orders")
    stream.group_by(lambda v: v["a"]).count()
    with pytest.raises(TopologyError) as caught:
        stream.group_by(lambda v: v["b"]).count()
    assert "name=" in caught.value.hint


def test_branch_returns_a_stream_for_each_predicate() -> None:
    arms = orders().branch(lambda v: v == 1, lambda v: v == 2)
    assert [arm.node.name for arm in arms] == ["orders.branch.branch-1", "orders.branch.branch-2"]
    (branch,) = arms[0].node.upstreams
    assert isinstance(branch, Branch) and len(branch.predicates) == 2


def test_split_returns_streams_by_name_and_one_for_the_rest() -> None:
    arms = orders().split(large=lambda v: v > 1, small=lambda v: v < 1)
    assert list(arms) == ["large", "small", "default"]
    assert arms["default"].node.name == "orders.branch.default"


@pytest.mark.parametrize("empty", [lambda s: s.branch(), lambda s: s.split()])
def test_a_branch_without_predicates_is_refused(empty: Callable[[Stream], Any]) -> None:
    with pytest.raises(TopologyError, match="at least one predicate") as caught:
        empty(orders())
    assert caught.value.at is not None


def test_a_branch_called_default_is_refused_with_its_position() -> None:
    with pytest.raises(TopologyError, match="default") as caught:
        orders().split(default=lambda v: v)
    assert caught.value.at is not None and caught.value.at.file == __file__


def test_streams_of_two_builders_do_not_merge() -> None:
    with pytest.raises(TopologyError, match="two builders"):
        orders().merge(orders())


def test_merge_takes_several() -> None:
    builder = StreamsBuilder("q")
    a, b, c = (builder.stream(topic) for topic in "abc")
    node = a.merge(b, c).node
    assert isinstance(node, Merge) and node.upstreams == (a.node, b.node, c.node)


def test_a_sink_keeps_its_options() -> None:
    stream = orders()
    stream.to("out", key_format="json", value_format="text", partitions=3)
    node = stream._graph.topology().nodes[-1]
    assert isinstance(node, Sink)
    assert (node.topic, node.key_format, node.value_format, node.partitions) == ("out", "json", "text", 3)


def test_a_format_of_a_sink_that_does_not_exist_is_refused_when_it_is_built() -> None:
    def build() -> None:
        builder = StreamsBuilder("q")
        builder.stream("orders").to("out", value_format="jsn")
        builder.build()

    with pytest.raises(PotokError, match="jsn"):
        build()


def test_through_continues_with_the_same_records() -> None:
    stream = orders()
    assert stream.through("out").node is stream.node


def test_a_handle_shows_its_step() -> None:
    assert repr(orders()) == '<Stream "orders">'


def test_a_sink_says_how_the_topic_that_it_creates_is_kept() -> None:
    builder = StreamsBuilder("q")
    stream = builder.stream("in")
    stream.to("plain")
    stream.to("week", retention="7 days")
    stream.to("table", cleanup_policy="delete, compact", retention=hours(1))
    sinks = {sink.topic: sink for sink in builder.build().of_type(Sink)}
    assert (sinks["plain"].retention_ms, sinks["plain"].cleanup_policy, sinks["plain"].kept) == (None, "delete", "")
    assert sinks["week"].kept == " (kept 7d)"
    assert (sinks["table"].retention_ms, sinks["table"].cleanup_policy) == (3_600_000, "compact,delete")
    assert sinks["table"].kept == " (compacted, kept 1h)"


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"cleanup_policy": "shrink"}, '"compact" or "compact,delete"'),
        ({"cleanup_policy": "compact", "retention": "1 day"}, 'cleanup_policy="compact,delete"'),
    ],
)
def test_a_sink_that_cannot_be_kept_so_is_refused_with_its_position(options: dict[str, str], hint: str) -> None:
    with pytest.raises(TopologyError, match=hint) as caught:
        StreamsBuilder("q").stream("in").to("out", **options)
    assert caught.value.at is not None
