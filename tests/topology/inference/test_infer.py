"""What is known of each step before anything runs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from potok.dsl.builder import StreamsBuilder
from potok.dsl.stream import Stream
from potok.dsl.table import Table
from potok.expressions.tracing.refusal import UnknownField
from potok.topology.aggregations import NotNumbers
from potok.topology.inference.infer import Step, infer
from potok.topology.nodes.windows import tumbling

ORDER = "user string, amount double, count bigint"
VALUE = pa.struct([("user", pa.string()), ("amount", pa.float64()), ("count", pa.int64())])
TEXT, INT, FLOAT = pa.string(), pa.int64(), pa.float64()


def orders(value: object = ORDER, **options: Any) -> Stream:
    return StreamsBuilder("q").stream("orders", value=value, **options)


def step_of(handle: Stream | Table) -> Step:
    topology = handle._graph.topology()
    return infer(topology)[handle.node]


def types(handle: Stream | Table) -> tuple[Any, Any]:
    step = step_of(handle)
    return step.key, step.value


def test_a_source_has_the_declared_types() -> None:
    assert types(orders()) == (TEXT, VALUE)
    assert types(orders(None)) == (TEXT, None)
    assert types(orders(int, key=bytes)) == (pa.binary(), INT)


@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.filter(lambda v: v["amount"] > 1),
        lambda s: s.filter_not(lambda v: len(repr(v)) > 1),
        lambda s: s.branch(lambda v: v["amount"] > 1)[0],
        lambda s: s.split(a=lambda v: v["amount"] > 1)["default"],
        lambda s: s.peek(print),
        lambda s: s.repartition(),
        lambda s: s.merge(s.filter(lambda v: True)),
        lambda s: s.through("elsewhere"),
    ],
)
def test_steps_that_choose_records_leave_the_types_alone(step: Any) -> None:
    assert types(step(orders())) == (TEXT, VALUE)


def test_a_traced_function_has_a_result_type() -> None:
    assert types(orders().map_values(lambda v: v["amount"] * 2)) == (TEXT, FLOAT)
    assert types(orders().map(lambda k, v: (v["count"], v["user"]))) == (INT, TEXT)
    assert types(orders().select_key(lambda v: v["count"])) == (INT, VALUE)
    assert types(orders().select_key("user")) == (TEXT, VALUE)


def test_a_function_that_cannot_be_traced_makes_dynamic_values_unless_a_type_is_given() -> None:
    assert types(orders().map_values(lambda v: repr(v))) == (TEXT, None)
    assert types(orders().map_values(lambda v: repr(v), value=str)) == (TEXT, TEXT)
    assert types(orders().map(lambda k, v: eval("k, v"))) == (None, None)
    assert types(orders().map(lambda k, v: eval("k, v"), key=int, value=str)) == (INT, TEXT)
    assert types(orders().select_key(lambda v: repr(v))) == (None, VALUE)
    assert types(orders().flat_map(lambda k, v: [])) == (None, None)
    assert types(orders().flat_map(lambda k, v: [], key=str, value=int)) == (TEXT, INT)
    assert types(orders().flat_map_values(lambda v: [])) == (TEXT, None)


def test_a_declared_type_wins_over_a_traced_one() -> None:
    step = step_of(orders().map_values(lambda v: v["count"], value=float))
    assert step.value == FLOAT
    assert not step.native and "differs" in step.reason


def test_a_dict_is_not_a_pair() -> None:
    step = step_of(orders().map(lambda k, v: {"a": v["user"], "b": v["count"]}))
    assert step.exprs == (None,)
    assert (step.key, step.value) == (None, None)


def test_streams_of_other_types_merge_to_dynamic_ones() -> None:
    builder = StreamsBuilder("q")
    texts, numbers = builder.stream("a", value=str), builder.stream("b", value=int, key=int)
    assert types(texts.merge(numbers)) == (None, None)


@pytest.mark.parametrize(
    ("aggregate", "result"),
    [
        (lambda g: g.count(), INT),
        (lambda g: g.sum("amount"), FLOAT),
        (lambda g: g.sum("count"), INT),
        (lambda g: g.avg("count"), FLOAT),
        (lambda g: g.min("count"), INT),
        (lambda g: g.max("user"), TEXT),
        (lambda g: g.latest(), VALUE),
        (lambda g: g.earliest("user"), TEXT),
        (lambda g: g.collect_list("user"), pa.list_(TEXT)),
        (lambda g: g.count_distinct("user"), INT),
        (lambda g: g.reduce(lambda a, b: b), None),
        (lambda g: g.aggregate(0.0, lambda k, v, agg: agg + v["amount"]), FLOAT),
        (lambda g: g.aggregate([], lambda k, v, agg: [*agg, v]), None),
        (lambda g: g.aggregate([], lambda k, v, agg: [*agg, v], value=list[str]), pa.list_(TEXT)),
    ],
)
def test_an_aggregate_has_the_type_of_its_result(aggregate: Any, result: pa.DataType | None) -> None:
    assert types(aggregate(orders().group_by_key())) == (TEXT, result)


def test_a_dict_of_sums_is_a_struct() -> None:
    table = (
        orders()
        .group_by_key()
        .aggregate({"n": 0, "total": 0.0}, lambda k, v, agg: {"n": agg["n"] + 1, "total": agg["total"] + v["amount"]})
    )
    assert types(table) == (TEXT, pa.struct([("n", INT), ("total", FLOAT)]))


def test_the_key_of_a_windowed_table_holds_the_window() -> None:
    table = orders().group_by_key().windowed_by(tumbling("1 hour")).count()
    assert types(table) == (pa.struct([("key", TEXT), ("start", INT), ("end", INT)]), INT)
    dynamic = orders(None).group_by(lambda v: v["u"]).windowed_by(tumbling("1 hour")).count()
    assert types(dynamic) == (None, INT)


def test_table_steps_know_their_types() -> None:
    table = orders().group_by_key().count()
    assert types(table.filter(lambda v: v > 1)) == (TEXT, INT)
    assert types(table.map_values(lambda v: v * 1.5)) == (TEXT, FLOAT)
    assert types(table.map_values(lambda v: repr(v))) == (TEXT, None)
    assert types(table.to_stream()) == (TEXT, INT)
    assert types(orders().to_table()) == (TEXT, VALUE)


def test_records_are_on_the_shard_of_their_key_until_the_key_changes() -> None:
    counts = orders().group_by_key().count()
    assert step_of(counts.to_stream()).sharded
    assert step_of(counts.to_stream().filter(lambda v: v > 1)).sharded
    assert not step_of(counts.to_stream().select_key(lambda v: v)).sharded
    assert not step_of(counts.to_stream().map(lambda k, v: (v, k))).sharded
    assert not step_of(orders()).sharded
    assert step_of(orders().repartition()).sharded


def test_the_rows_of_a_windowed_table_are_not_on_the_shard_of_their_windowed_key() -> None:
    table = orders().group_by_key().windowed_by(tumbling("1 hour")).count()
    assert not step_of(table.to_stream()).sharded


def test_values_are_intact_until_something_replaces_them() -> None:
    assert step_of(orders().filter(lambda v: v["amount"] > 1).select_key("user")).intact
    assert not step_of(orders().map_values(lambda v: v)).intact
    assert step_of(orders().repartition()).intact
    assert not step_of(orders().group_by_key().count().to_stream()).intact


@pytest.mark.parametrize("fold", ["reduce", "collect_list", "aggregate"])
def test_folds_over_keys_from_several_partitions_depend_on_the_order(fold: str) -> None:
    make: Any = {
        "reduce": lambda g: g.reduce(lambda a, b: b),
        "collect_list": lambda g: g.collect_list(),
        "aggregate": lambda g: g.aggregate([], lambda v, agg: [*agg, v]),
    }[fold]
    builder = StreamsBuilder("q")
    one, two = builder.stream("a"), builder.stream("b")
    assert not step_of(make(one.group_by_key())).order_dependent
    assert step_of(make(one.group_by(lambda v: v["u"]))).order_dependent
    assert step_of(make(one.merge(two).group_by_key())).order_dependent


def test_a_stream_merged_with_its_own_records_that_waited_is_no_longer_in_the_order_of_its_partitions() -> None:
    stream = orders()
    ordered = stream.ordered("1 s")
    assert step_of(stream.merge(ordered.map_values(lambda v: v))).rekeyed
    assert step_of(ordered.merge(stream.ordered("2 s"))).rekeyed
    assert not step_of(ordered.merge(ordered.filter(lambda v: v["amount"] > 1))).rekeyed
    assert not step_of(stream.merge(stream.filter(lambda v: v["amount"] > 1))).rekeyed


def test_aggregates_that_commute_never_depend_on_the_order() -> None:
    grouped = orders().group_by("user")
    for table in (grouped.count(name="a"), grouped.latest(name="b"), grouped.sum("amount", name="c")):
        assert not step_of(table).order_dependent


def test_a_field_that_does_not_exist_is_found_with_the_location_of_the_lambda() -> None:
    with pytest.raises(UnknownField, match='"amuont"') as caught:
        step_of(orders().filter(lambda v: v["amuont"] > 1))
    assert caught.value.at is not None and caught.value.at.file == __file__
    assert "amount" in caught.value.hint


def test_a_field_named_by_text_is_found_with_the_location_of_the_call() -> None:
    with pytest.raises(UnknownField) as caught:
        step_of(orders().group_by("usr").count())
    assert caught.value.at is not None and caught.value.at.file == __file__


def test_a_timestamp_field_is_traced() -> None:
    assert step_of(orders("at bigint", timestamp="at")).native
    assert not step_of(orders(timestamp=lambda v: hash(v))).native


@pytest.mark.parametrize("kind", ["sum", "avg"])
@pytest.mark.parametrize("of", ["user", lambda v: v["user"]])
def test_a_sum_of_text_is_refused_where_it_was_written(kind: str, of: Any) -> None:
    table = getattr(orders().group_by_key(), kind)(of, name="t")
    with pytest.raises(NotNumbers, match=rf"cannot take the {kind} of .*user.*: it is string") as caught:
        step_of(table)
    assert "float(" in caught.value.hint
    assert caught.value.at is not None
    assert caught.value.at.file == __file__


def test_a_sum_of_values_that_are_not_numbers_is_refused() -> None:
    with pytest.raises(NotNumbers, match="the sum of the values: it is struct"):
        step_of(orders().group_by_key().sum(name="t"))


def test_a_sum_of_text_in_groups_of_rows_is_refused_too() -> None:
    users = StreamsBuilder("q").table("users", value="city string, name string")
    with pytest.raises(NotNumbers):
        step_of(users.group_by("city").sum("name", name="t"))


def test_sums_of_numbers_and_of_what_has_no_type_are_not_refused() -> None:
    for of in ("amount", "count", lambda v: v["amount"] > 1):
        assert step_of(orders().group_by_key().sum(of, name="t")).key == TEXT
    assert step_of(orders(None).group_by_key().sum("user", name="t")).value is None


USER = "city string, name string, cents bigint"


@pytest.mark.parametrize("how", ["join", "left_join", "outer_join"])
def test_a_joiner_of_tables_that_reads_a_field_that_does_not_exist_is_refused(how: str) -> None:
    builder = StreamsBuilder("q")
    users, cities = builder.table("users", value=USER), builder.table("cities", value="country string")
    joined = getattr(users, how)(cities, lambda user, city: {"n": user["name"], "c": city["contry"]})
    with pytest.raises(UnknownField, match="contry") as caught:
        step_of(joined)
    assert caught.value.at is not None
    assert caught.value.at.file == __file__


def test_a_joiner_by_foreign_key_that_reads_a_field_that_does_not_exist_is_refused() -> None:
    builder = StreamsBuilder("q")
    users, cities = builder.table("users", value=USER), builder.table("cities", value="country string")
    joined = users.join(cities, lambda key, user, city: user["nmae"], on="city")
    with pytest.raises(UnknownField, match="nmae"):
        step_of(joined)


def test_joiners_of_tables_without_types_are_left_alone() -> None:
    builder = StreamsBuilder("q")
    joined = builder.table("a").join(builder.table("b", value=USER), lambda left, right: right["anything"])
    assert step_of(joined).value is None


@pytest.mark.parametrize(
    ("adder", "subtractor"),
    [
        (lambda v, total: total + v["sents"], lambda v, total: total - v["cents"]),
        (lambda v, total: total + v["cents"], lambda k, v, total: total - v["sents"]),
    ],
)
def test_an_aggregate_of_rows_that_reads_a_field_that_does_not_exist_is_refused(adder: Any, subtractor: Any) -> None:
    users = StreamsBuilder("q").table("users", value=USER)
    with pytest.raises(UnknownField, match="sents") as caught:
        step_of(users.group_by("city").aggregate(0, adder, subtractor, name="t"))
    assert caught.value.at is not None
    assert caught.value.at.file == __file__
