"""How a topology is cut into stages."""

from __future__ import annotations

from collections.abc import Callable

import cloudpickle

from potok.dsl.builder import StreamsBuilder
from potok.runtime.operations.replay import with_prefix
from potok.topology.execution_plan import Plan, make_plan
from potok.topology.graph import Topology
from potok.topology.nodes.windows import tumbling


def plan(build: Callable[[StreamsBuilder], object]) -> Plan:
    builder = StreamsBuilder("q")
    build(builder)
    return make_plan(builder.build(), 4)


def levels(found: Plan, *names: str) -> list[int]:
    return [found.levels[found.topology.node(name)] for name in names]


def test_a_topology_without_state_needs_no_shuffle() -> None:
    found = plan(lambda b: b.stream("t").filter(lambda v: v).map(lambda k, v: (v, k)).to("out"))
    assert found.depth == 0


def test_all_aggregates_of_one_level_share_a_shuffle() -> None:
    def build(b: StreamsBuilder) -> None:
        stream = b.stream("t", value="a string, b string")
        stream.group_by("a").count(name="one")
        stream.group_by("b").latest(name="two")
        stream.to_table(name="three")
        b.table("u", name="four")

    found = plan(build)
    assert found.depth == 1
    assert levels(found, "t", "one", "two", "three", "four") == [0, 1, 1, 1, 1]


def test_what_stays_on_the_shard_of_its_key_needs_no_other_shuffle() -> None:
    def build(b: StreamsBuilder) -> None:
        counts = b.stream("t").group_by_key().count(name="n")
        counts.filter(lambda v: v > 1, name="some").to_stream().group_by_key().max(name="most")
        counts.to_stream().filter(lambda v: v > 1).to_table(name="copy")

    found = plan(build)
    assert levels(found, "n", "some", "most", "copy") == [1, 1, 1, 1]


def test_another_key_needs_another_shuffle() -> None:
    def build(b: StreamsBuilder) -> None:
        counts = b.stream("t").group_by_key().count(name="n")
        counts.to_stream().group_by(lambda v: v).count(name="by_count").to_stream().to("out")

    found = plan(build)
    assert levels(found, "n", "by_count", "by_count.to_stream.to.out") == [1, 2, 2]


def test_the_rows_of_windows_move_to_be_grouped_again() -> None:
    def build(b: StreamsBuilder) -> None:
        b.stream("t").group_by_key().windowed_by(tumbling(5)).count(name="w").to_stream().to_table(name="copy")

    assert levels(plan(build), "w", "copy") == [1, 2]


def test_a_repartition_moves_once_for_all_that_follows() -> None:
    def build(b: StreamsBuilder) -> None:
        b.stream("t").repartition(name="r").map_values(lambda v: v).group_by_key().reduce(lambda a, b: b, name="n")

    assert levels(plan(build), "r", "n") == [1, 1]


def test_a_merge_runs_where_the_later_of_its_streams_is() -> None:
    def build(b: StreamsBuilder) -> None:
        one = b.stream("one")
        changes = b.stream("two").group_by_key().count(name="n").to_stream()
        one.merge(changes, name="m").to("out")

    assert levels(plan(build), "one", "n", "m") == [0, 1, 1]


def test_a_plan_says_which_columns_of_a_topic_are_decoded() -> None:
    def build(b: StreamsBuilder) -> None:
        b.stream("t", value="a string, b double, c string").group_by("a").sum("b", name="s")
        b.stream("d").to("out")

    assert plan(build).columns == {"t": ["a", "b"], "d": []}


def test_a_plan_travels_to_the_workers() -> None:
    def build(b: StreamsBuilder) -> None:
        limit = 5
        b.stream("t", value="a bigint").filter(lambda v: v["a"] > limit).group_by_key().count(name="n")

    found = plan(build)
    copy = cloudpickle.loads(cloudpickle.dumps(found))
    assert copy.depth == found.depth and [n.name for n in copy.topology] == [n.name for n in found.topology]
    assert levels(copy, "n") == [1]


def test_a_replay_decodes_what_the_query_decodes() -> None:
    builder = StreamsBuilder("q")
    orders = builder.stream("orders", value="user string, amount double")
    orders.group_by("user").count(name="counts")
    orders.foreach(lambda k, v: print(v["amount"]))
    topology = builder.build()
    whole = make_plan(topology, 2)
    assert make_plan(with_prefix(topology, "again-"), 2).columns == whole.columns
    assert whole.columns != make_plan(Topology("q", with_prefix(topology, "again-").nodes), 2).columns
