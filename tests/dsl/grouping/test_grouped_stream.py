"""The aggregates of a grouped stream."""

from __future__ import annotations

from typing import Any

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.dsl.grouping.grouped_stream import GroupedStream
from potok.errors import TopologyError
from potok.expressions.function import WrongArity
from potok.topology.nodes import Aggregate, Aggregation
from potok.topology.nodes.windows import tumbling


def grouped() -> GroupedStream:
    return StreamsBuilder("q").stream("orders").group_by_key()


def aggregation(table: Any) -> Aggregation:
    node = table.node
    assert isinstance(node, Aggregate)
    return node.aggregation


@pytest.mark.parametrize("kind", ["sum", "min", "max", "avg", "collect_list", "count_distinct", "latest", "earliest"])
def test_an_aggregate_by_name_takes_a_field_a_function_or_the_whole_value(kind: str) -> None:
    assert aggregation(getattr(grouped(), kind)()) == Aggregation(kind)
    by_field = aggregation(getattr(grouped(), kind)("amount"))
    assert by_field.function is not None and by_field.function({"amount": 3}) == 3
    by_function = aggregation(getattr(grouped(), kind)(lambda k, v: (k, v)))
    assert by_function.function is not None and by_function.function.arity == 2


def test_an_aggregate_has_the_name_of_its_path_or_the_given_one() -> None:
    assert grouped().count().name == "orders.count"
    assert grouped().count(name="order_counts").name == "order_counts"
    assert grouped().aggregate(0, lambda v, agg: agg).name == "orders.aggregate"


def test_an_initial_value_may_be_plain_or_made_by_a_function() -> None:
    plain = aggregation(grouped().aggregate(initializer=0.0, aggregator=lambda k, v, agg: agg))
    assert (plain.initial, plain.make_initial) == (0.0, None)
    made = aggregation(grouped().aggregate(lambda: {"n": 0}, lambda k, v, agg: agg))
    assert made.initial == {"n": 0} and made.make_initial is not None
    assert aggregation(grouped().aggregate(dict, lambda v, agg: agg)).initial == {}


def test_an_aggregator_takes_two_or_three_arguments() -> None:
    with pytest.raises(WrongArity):
        grouped().aggregate(0, lambda agg: agg)


def test_a_reducer_takes_two_arguments() -> None:
    with pytest.raises(WrongArity):
        grouped().reduce(lambda a, b, c: a)


def test_an_aggregate_knows_its_window() -> None:
    window = tumbling("1 hour")
    node = grouped().windowed_by(window).count().node
    assert isinstance(node, Aggregate) and node.window == window


def test_a_window_must_be_a_window() -> None:
    with pytest.raises(TopologyError, match="windowed_by") as caught:
        grouped().windowed_by(3600)  # type: ignore[arg-type]
    assert caught.value.at is not None and caught.value.at.file == __file__


def test_an_aggregate_knows_its_location() -> None:
    node = grouped().sum("amount").node
    assert node.at is not None and node.at.file == __file__
