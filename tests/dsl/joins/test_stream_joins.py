"""Joins as a user writes them: what they are called, what they refuse, and what they say."""

from __future__ import annotations

from typing import Any

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.dsl.handle import UnnamedState
from potok.dsl.joins.join_steps import JoinWithoutWindow
from potok.dsl.table import GlobalTable
from potok.duration import minutes, seconds
from potok.errors import PotokError, TopologyError
from potok.expressions.function import WrongArity
from potok.topology.inference.infer import infer
from potok.topology.inference.joins import KeysDiffer, WindowedTable
from potok.topology.nodes import (
    HistoryFilter,
    HistoryLookup,
    HistoryMapValues,
    JoinKind,
    JoinWindow,
    LookupKey,
    StreamJoin,
    TableLookup,
    TableRecords,
)
from potok.topology.nodes.windows import tumbling


@pytest.fixture
def builder() -> StreamsBuilder:
    return StreamsBuilder("q")


def pair(left: Any, right: Any) -> Any:
    return [left, right]


def node_of(joined: Any) -> Any:
    return joined.node


def test_a_duration_reaches_both_ways_and_a_pair_each_its_own(builder: StreamsBuilder) -> None:
    left, right = builder.stream("l"), builder.stream("r")
    both = node_of(left.join(right, within="5 minutes", name="a"))
    each = node_of(left.join(right, within=(seconds(1), minutes(2)), grace=seconds(3), name="b"))
    assert both.window == JoinWindow(300_000, 300_000, 0)
    assert each.window == JoinWindow(1_000, 120_000, 3_000)


@pytest.mark.parametrize(
    ("verb", "kind"),
    [("join", JoinKind.INNER), ("left_join", JoinKind.LEFT), ("outer_join", JoinKind.OUTER), ("leftJoin", "left")],
)
def test_three_kinds_of_join(builder: StreamsBuilder, verb: str, kind: str) -> None:
    node = node_of(getattr(builder.stream("l"), verb)(builder.stream("r"), pair, within=1))
    assert isinstance(node, StreamJoin)
    assert node.how == kind


def test_a_join_is_named_after_both_sides(builder: StreamsBuilder) -> None:
    orders, users = builder.stream("orders"), builder.table("users")
    assert node_of(orders.join(users)).name == "orders.join.users"
    assert node_of(orders.left_join(builder.stream("payments"), within=1)).name == "orders.left_join.payments"
    assert node_of(orders.join(users, name="known")).name == "known"


def test_a_join_of_numbered_steps_needs_a_name(builder: StreamsBuilder) -> None:
    orders, users = builder.stream("orders"), builder.table("users")
    orders.filter(bool)
    second = orders.filter(bool)
    with pytest.raises(UnnamedState):
        second.join(users)
    with pytest.raises(UnnamedState):
        orders.join(second, within=1)


def test_a_table_is_looked_up_by_the_key_or_by_a_field(builder: StreamsBuilder) -> None:
    orders, users = builder.stream("orders"), builder.table("users")
    by_key = node_of(orders.join(users, pair, name="by_key"))
    by_field = node_of(orders.join(users, pair, on="user", key=str, name="by_field"))
    assert isinstance(by_key, TableLookup)
    assert by_key.stream is orders.node
    assert isinstance(by_field.stream, LookupKey)
    assert by_field.stream.name == "by_field.on"


def test_a_global_table_takes_first_the_key_and_then_the_joiner(builder: StreamsBuilder) -> None:
    orders, products = builder.stream("orders"), builder.globalTable("products", value="price double")
    assert isinstance(products, GlobalTable)
    node = node_of(orders.join(products, "product", pair, key=str))
    assert isinstance(node.stream, LookupKey)
    assert node.function.callable is pair
    assert node_of(orders.join(products, pair, on="product", key=str, name="named")).function.callable is pair
    assert node_of(orders.join(products, "product", key=str, name="plain")).function is None


@pytest.mark.parametrize("verb", ["join", "left_join", "leftJoin", "outer_join", "outerJoin"])
@pytest.mark.parametrize("left", ["stream", "table"])
def test_a_joiner_may_be_named(builder: StreamsBuilder, left: str, verb: str) -> None:
    """Both sides of the same kind: streams with a window, tables without."""
    options = {"within": 1} if left == "stream" else {}
    one, other = getattr(builder, left)("a"), getattr(builder, left)("b")
    assert node_of(getattr(one, verb)(other, joiner=pair, **options)).function.callable is pair


@pytest.mark.parametrize("verb", ["join", "left_join", "leftJoin"])
def test_a_joiner_may_be_passed_with_the_lookup_key(builder: StreamsBuilder, verb: str) -> None:
    orders, users, products = builder.stream("orders"), builder.table("users"), builder.global_table("products")
    joined = [
        getattr(orders, verb)(users, joiner=pair, name="by_key"),
        getattr(orders, verb)(users, on="user", key=str, joiner=pair, name="by_field"),
        getattr(orders, verb)(users, joiner=pair, grace=1, name="waiting"),
        getattr(orders, verb)(products, "product", joiner=pair, key=str, name="global"),
        getattr(orders, verb)(products, on="product", joiner=pair, key=str, name="global_on"),
    ]
    assert [node_of(one).function.callable for one in joined] == [pair] * 5
    foreign = node_of(getattr(builder.table("sales"), verb)(users, joiner=pair, on="user"))
    assert foreign.upstream.function.callable is pair


def test_what_waits_looks_at_the_records_behind_the_table(builder: StreamsBuilder) -> None:
    orders = builder.stream("orders")
    users = builder.table("users").filter(lambda v: v["active"]).map_values(lambda v: v["name"])
    node = node_of(orders.join(users, pair, grace="1 minute"))
    assert isinstance(node, HistoryLookup)
    assert isinstance(node.table, HistoryMapValues)
    assert isinstance(node.table.upstream, HistoryFilter)
    assert isinstance(node.table.upstream.upstream, TableRecords)
    of_stream = builder.stream("moods")
    assert node_of(orders.join(of_stream.to_table(), pair, grace=1)).table is of_stream.node


def test_a_join_says_whether_it_depends_on_what_came_first(builder: StreamsBuilder) -> None:
    orders, users = builder.stream("orders"), builder.table("users")
    counts = builder.stream("clicks").group_by_key().count(name="counts")
    joins = {
        "at hand": orders.join(users, name="a"),
        "waits": orders.join(users, grace=1, name="b"),
        "waits for an aggregate": orders.join(counts, grace=1, name="c"),
        "streams": orders.join(builder.stream("payments"), within=1, name="d"),
    }
    for joined in joins.values():
        joined.to(f"out-{joined.node.name}")
    inferred = infer(builder.build())
    depends = {name: inferred[joined.node].order_dependent for name, joined in joins.items()}
    assert depends == {"at hand": True, "waits": False, "waits for an aggregate": True, "streams": False}


def test_describe_says_how_far_apart_and_which_sides_move(builder: StreamsBuilder) -> None:
    orders = builder.stream("orders").repartition(name="placed")
    joined = orders.left_join(builder.stream("payments"), within=("1 minute", 0), grace="5 s", name="paid")
    joined.join(builder.table("users"), on="user", key=str, grace=0, wait_for_table=True, name="known").to("out")
    text = builder.describe()
    assert "paid: left, from 1m before to 0ms after, grace 5s; re-keyed by the join: payments" in text
    assert "known: inner, the row as of the record's time, grace 0ms; waits until the table is loaded" in text
    assert "re-keyed by the join: known.on, known.history" in text


def test_the_result_of_a_typed_join_is_typed(builder: StreamsBuilder) -> None:
    left = builder.stream("l", value="n bigint, s string")
    right = builder.stream("r", value="m double")
    joins = [
        left.join(right, lambda a, b: {"sum": a["n"] + b["m"]}, within=1, name="traced"),
        left.join(right, within=1, name="both"),
        left.join(right, lambda a, b: str(a), within=1, name="python"),
        left.join(right, lambda a, b: {"n": str(a)}, value="n string", within=1, name="declared"),
    ]
    for joined in joins:
        joined.to(f"out-{joined.node.name}")
    inferred = infer(builder.build())
    assert [str(inferred[joined.node].value) for joined in joins] == [
        "struct<sum: double>",
        "struct<left: struct<n: int64, s: string>, right: struct<m: double>>",
        "None",
        "struct<n: string>",
    ]


def refused(builder: StreamsBuilder, write: Any) -> PotokError:
    handles = builder.stream("orders"), builder.stream("payments"), builder.table("users")

    def program() -> None:
        write(*handles)
        builder.build()

    with pytest.raises(TopologyError) as caught:
        program()
    assert caught.value.at is not None
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda o, p, u: o.join(u, within=1), "a join with a table has no window"),
        (lambda o, p, u: o.outer_join(u, within=1), "a stream cannot be outer-joined with a table"),
        (lambda o, p, u: o.join(p, within=-1), "within= cannot be negative"),
        (lambda o, p, u: o.join(p, within=1, grace=-1), "grace= cannot be negative"),
        (lambda o, p, u: o.join(p, within=1, on="user"), "on= and wait_for_table= are for joins with a table"),
        (lambda o, p, u: o.join(p, "user", within=1), "a join takes one joiner"),
        (lambda o, p, u: o.join(u, pair, pair), "a join takes one joiner"),
        (lambda o, p, u: o.join(u, pair, joiner=pair), "a join takes one joiner"),
        (lambda o, p, u: o.join(p, joiner="user", within=1), "a join takes one joiner"),
        (lambda o, p, u: o.join(u, joiner=5), "5 is not a function"),
        (lambda o, p, u: o.join(u, lambda v: v), "takes 1 argument"),
        (lambda o, p, u: o.left_join(u, joiner=lambda v: v), "takes 1 argument"),
        (lambda o, p, u: o.join("payments", within=1), "cannot join a stream to 'payments'"),
        (lambda o, p, u: o.join(StreamsBuilder("x").stream("p"), within=1), "handles of two builders"),
    ],
)
def test_meaningless_expressions_are_refused_with_their_position(
    builder: StreamsBuilder, write: Any, message: str
) -> None:
    assert message in refused(builder, write).message


def test_two_streams_need_a_window(builder: StreamsBuilder) -> None:
    error = refused(builder, lambda o, p, u: o.join(p))
    assert isinstance(error, JoinWithoutWindow)
    assert "within=minutes(5)" in error.hint


def test_a_global_table_needs_the_key_to_look_up(builder: StreamsBuilder) -> None:
    with pytest.raises(TopologyError, match="needs the key to look up"):
        builder.stream("orders").join(builder.global_table("products"))
    with pytest.raises(TopologyError, match="needs the key to look up"):
        builder.stream("sales").join(builder.global_table("goods"), joiner=pair)


def test_keys_of_different_types_are_refused(builder: StreamsBuilder) -> None:
    error = refused(builder, lambda o, p, u: o.join(p.select_key("n"), within=1).to("out"))
    assert isinstance(error, KeysDiffer)
    assert "the keys of the one are string, of the other dynamic" in error.message
    assert error.hint.endswith('or select_key(..., key="string")')
    assert 'join(..., on=..., key="string")' in error.hint


def test_a_windowed_table_is_refused(builder: StreamsBuilder) -> None:
    counts = builder.stream("clicks").group_by_key().windowed_by(tumbling("1 minute")).count(name="counts")
    error = refused(builder, lambda o, p, u: o.join(counts).to("out"))
    assert isinstance(error, WindowedTable)
    assert 'the windowed table "counts"' in error.message


@pytest.mark.parametrize("other", ["stream", "table"])
def test_a_joiner_with_other_arguments_is_answered_with_what_to_write(other: str) -> None:
    builder = StreamsBuilder("q")
    options = {"within": "1 h"} if other == "stream" else {}
    with pytest.raises(WrongArity) as caught:
        builder.stream("a").join(getattr(builder, other)("b"), lambda v: v, **options)
    assert caught.value.hint == "write lambda left, right: ... or lambda key, left, right: ..."


def test_a_joiner_of_tables_is_answered_in_the_same_way() -> None:
    builder = StreamsBuilder("q")
    with pytest.raises(WrongArity, match="takes 1 argument, but it is called with 2 or 3") as caught:
        builder.table("a").join(builder.table("b"), lambda v: v)
    assert "left, right" in caught.value.hint
