"""A value of a declared class reaches Python functions as an instance of that class."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from potok import (
    Record,
    Stream,
    StreamsBuilder,
    Table,
    hopping,
    minutes,
    session,
    sliding,
    tumbling,
)
from potok.errors import TopologyError
from potok.expressions.tracing.trace import Argument, Traced, Untraceable, trace
from potok.patterns import cep
from potok.records.declared_class import instance_class
from potok.records.schemas.declared_schema import declared_schema
from potok.testing import TestDriver


@dataclass
class Item:
    sku: str
    price: float

    def with_tax(self) -> float:
        return self.price * 2


@dataclass
class Order:
    user: str
    amount: float
    items: list[Item]
    keys: int = 3

    def is_large(self) -> bool:
        return self.amount > 100

    @property
    def total(self) -> float:
        return sum(item.with_tax() for item in self.items)


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int

    def sum(self) -> int:
        return self.x + self.y


@dataclass
class Stats:
    count: int = 0
    last: float = 0.0

    def add(self, amount: float) -> Stats:
        return Stats(self.count + 1, amount)


class Payment(Record):
    amount: float

    def doubled(self) -> float:
        return self.amount * 2


@dataclass
class Email:
    address: str
    domain: str = field(init=False)

    def __post_init__(self) -> None:
        if "@" not in self.address:
            raise ValueError("an address has an @")
        self.address = self.address.lower()
        self.domain = self.address.split("@")[1]


ORDERS = [
    {"user": "ann", "amount": 120.0, "items": [{"sku": "a", "price": 10.0}]},
    {"user": "bob", "amount": 20.0, "items": []},
    {"user": "ann", "amount": 150.0, "items": [{"sku": "a", "price": 1.0}, {"sku": "b", "price": 2.0}]},
]


def results(program: Callable[[Stream[Any, Order]], Any], *, together: bool, spark: bool = False) -> list[Any]:
    """Return what a program writes to `out`, with all records in one batch or one record in each."""
    builder = StreamsBuilder("classes")
    out = program(builder.stream("orders", value=Order))
    (out.to_stream() if isinstance(out, Table) else out).to("out")
    with TestDriver(builder, spark=spark) as driver:
        for number, order in enumerate(ORDERS):
            driver.send("orders", order, key=order["user"], timestamp=1_000 * number, partition=0)
            if not together:
                driver.run()
        driver.run()
        assert driver.dead_letters() == []
        return [record.value for record in driver.read("out")]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "filter": lambda s: s.filter(lambda v: v.is_large() and isinstance(v, Order)).map_values(lambda v: v["amount"]),
    "map_values": lambda s: s.map_values(lambda v: [v.total, v.keys, {**v}["user"], isinstance(v, Order)]),
    "flat_map": lambda s: s.flat_map_values(lambda v: [item.with_tax() for item in v.items]),
    "select_key": lambda s: s.select_key(lambda k, v: str(v.is_large())).map_values(lambda v: v.total),
    "repartition": lambda s: s.repartition().map_values(lambda v: v.total),
    "merge": lambda s: s.merge(s).map_values(lambda v: v.total),
    "join": lambda s: s.join(s, lambda a, b: a.total + b.total, within=minutes(1)),
    "table": lambda s: s.to_table(name="t").map_values(lambda v: v.total),
    "table_filter": lambda s: s.to_table(name="t").filter(lambda v: v.is_large()).map_values(lambda v: v.amount),
    "reduce": lambda s: (
        s.group_by_key().reduce(lambda a, b: b if b.is_large() else a).map_values(lambda v: v["amount"])
    ),
    "aggregate": lambda s: s.group_by_key().aggregate(list, lambda k, v, a: [*a, v.total]),
    "aggregate_class": lambda s: (
        s.group_by_key().aggregate(Stats(), lambda k, v, a: a.add(v.total)).map_values(lambda v: v["count"])
    ),
    "tumbling": lambda s: (
        s.group_by_key().windowed_by(tumbling(minutes(1))).aggregate(0.0, lambda k, v, a: a + v.total)
    ),
    "hopping": lambda s: (
        s.group_by_key().windowed_by(hopping(minutes(2), minutes(1))).aggregate(0.0, lambda k, v, a: a + v.total)
    ),
    "session": lambda s: s.group_by_key().windowed_by(session(minutes(1))).aggregate(0.0, lambda k, v, a: a + v.total),
    "session_reduce": lambda s: (
        s.group_by_key().windowed_by(session(minutes(1))).reduce(lambda a, b: a if a.is_large() else b)
    ),
    "sliding": lambda s: s.group_by_key().windowed_by(sliding(minutes(1))).aggregate(0.0, lambda k, v, a: a + v.total),
    "table_aggregate": lambda s: (
        s.to_table(name="t")
        .group_by(lambda k, v: (str(v.is_large()), v))
        .aggregate(Stats(), adder=lambda k, v, a: a.add(v["amount"]), subtractor=lambda k, v, a: a.add(0.0))
        .map_values(lambda v: v["last"])
    ),
    "reduced": lambda s: s.group_by_key().reduce(lambda a, b: b).map_values(lambda v: v.total),
    "reduced_windows": lambda s: (
        s.group_by_key()
        .windowed_by(hopping(minutes(2), minutes(1)))
        .reduce(lambda a, b: b if a.is_large() else a)
        .map_values(lambda v: v.total)
    ),
    "aggregate_of_a_function": lambda s: (
        s.group_by_key().aggregate(lambda: Stats(0, 0.0), lambda v, a: a.add(v.total)).map_values(lambda v: v.add(1.0))
    ),
    "aggregate_of_columns": lambda s: (
        s.group_by_key()
        .aggregate(
            {"count": 0, "last": 0.0}, lambda v, a: {"count": a.count + 1, "last": a.last + v.amount}, value=Stats
        )
        .map_values(lambda v: v.add(1.0).last)
    ),
    "cogroup": lambda s: (
        s.group_by_key()
        .cogroup(lambda v, a: a + v.total)
        .cogroup(s.filter(lambda v: v.is_large()).group_by_key(), lambda k, v, a: a + v.items[0].with_tax())
        .aggregate(0.0)
    ),
    "stream_table_join": lambda s: s.join(s.to_table(name="t"), lambda a, b: a.total + b.total),
    "table_table_join": lambda s: s.to_table(name="t").outer_join(
        s.filter(lambda v: v.is_large()).to_table(name="u"), lambda a, b: a.total + (0 if b is None else b.total)
    ),
    "foreign_key_join": lambda s: s.to_table(name="t").join(
        s.to_table(name="u"), lambda a, b: a.total + b.total, on=lambda v: v.user
    ),
    "table_reduce": lambda s: (
        s.to_table(name="t")
        .group_by(lambda k, v: ("all", v))
        .reduce(lambda a, b: b if a.is_large() else a, lambda a, b: a if b.is_large() else b)
        .map_values(lambda v: v.total)
    ),
    "collect_list": lambda s: (
        s.group_by_key().collect_list(lambda v: v).map_values(lambda v: [each.total for each in v])
    ),
    "latest": lambda s: s.group_by_key().latest(lambda v: v).map_values(lambda v: v.total),
    "processor": lambda s: s.process(lambda k, v, ctx: [v], value=Order, name="p").map_values(lambda v: v.total),
    "pattern": lambda s: (
        s.filter(lambda v: v.user == "ann")
        .group_by_key()
        .match(
            cep.event("a", lambda v: v.is_large())
            .followed_by(cep.event("b", lambda v, m: v.total > 0 and m["a"].first.is_large()))
            .within("1 minute"),
            grace="0 s",
            name="m",
        )
        .merge(s.filter(lambda v: v.user == "bob"))
    ),
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_functions_of_every_step_get_instances(name: str, together: bool) -> None:
    assert results(PROGRAMS[name], together=together)


@pytest.mark.usefixtures("spark")
def test_the_steps_of_a_stream_get_instances_in_spark_workers() -> None:
    assert results(PROGRAMS["map_values"], together=True, spark=True) == [
        [20.0, 3, "ann", True],
        [0.0, 3, "bob", True],
        [6.0, 3, "ann", True],
    ]


def run(builder: StreamsBuilder, *values: Any) -> TestDriver:
    driver = TestDriver(builder)
    for value in values:
        driver.send("in", value)
    driver.run()
    return driver


def test_a_class_with_slots_reaches_functions_as_an_instance() -> None:
    builder = StreamsBuilder("slots")
    builder.stream("in", value=Point).map_values(lambda v: [v.sum(), isinstance(v, Point), v["x"], {**v}]).to("out")
    with run(builder, {"x": 1, "y": 2}) as driver:
        assert [record.value for record in driver.read("out")] == [[3, True, 1, {"x": 1, "y": 2}]]


def test_a_record_class_reaches_functions_as_an_instance() -> None:
    builder = StreamsBuilder("records")
    builder.stream("in", value=Payment).map_values(lambda v: v.doubled()).to("out")
    with run(builder, {"amount": 2.0}) as driver:
        assert [record.value for record in driver.read("out")] == [4.0]


def test_a_function_may_change_the_fields_of_its_own_instance() -> None:
    def charged(order: Order) -> Order:
        order.amount += 1
        return order

    builder = StreamsBuilder("changed")
    orders = builder.stream("in", value=Order)
    orders.map_values(charged).to("charged")
    orders.map_values(lambda v: [v.is_large(), v.amount]).to("same")
    with run(builder, ORDERS[0]) as driver:
        assert [record.value["amount"] for record in driver.read("charged")] == [121.0]
        assert [record.value for record in driver.read("same")] == [[True, 120.0]]


def test_a_class_completes_and_checks_its_values_where_they_are_read() -> None:
    builder = StreamsBuilder("emails")
    emails = builder.stream("in", value=Email)
    emails.map_values(lambda v: v.address).to("traced")
    emails.map_values(lambda v: v.domain).to("python")
    with run(builder, {"address": "Ann@Example.org"}, {"address": "nobody"}) as driver:
        assert [record.value for record in driver.read("traced")] == ["ann@example.org"]
        assert [record.value for record in driver.read("python")] == ["example.org"]
        [dead_letter] = driver.dead_letters()
        assert (dead_letter.offset, dead_letter.reason) == (1, "decode")
        assert "an address has an @" in dead_letter.error


def test_a_reduced_value_without_the_fields_of_the_class_is_a_dead_letter() -> None:
    builder = StreamsBuilder("reduced")
    orders = builder.stream("in", value=Order)
    orders.group_by(lambda v: v.user).reduce(lambda a, b: {"amount": a.amount + b.amount}, name="totals")
    with run(builder, ORDERS[0], ORDERS[2]) as driver:
        [dead_letter] = driver.dead_letters()
        assert "does not have exactly the fields user, amount, items, keys" in dead_letter.error
        assert driver.table("totals").get("ann")["amount"] == 120.0


def test_streams_of_different_classes_merge_to_values() -> None:
    @dataclass
    class Invoice:
        user: str
        amount: float
        items: list[Item]
        keys: int = 3

    builder = StreamsBuilder("merged")
    orders, invoices = builder.stream("in", value=Order), builder.stream("invoices", value=Invoice)
    orders.merge(invoices).map_values(lambda v: [isinstance(v, Order), v["amount"]]).to("out")
    with TestDriver(builder) as driver:
        driver.send("in", ORDERS[0])
        driver.send("invoices", ORDERS[1])
        driver.run()
        assert sorted(record.value for record in driver.read("out")) == [[False, 20.0], [False, 120.0]]


@pytest.mark.parametrize(
    "function",
    [
        lambda v: v.amount > 100,
        lambda v: {"keys": v.keys, "user": v["user"]},
        lambda v: v.items,
    ],
)
def test_a_lambda_over_the_fields_of_a_class_is_traced(function: Callable[..., Any]) -> None:
    schema = declared_schema(Order)
    assert schema is not None
    assert isinstance(trace(function, [Argument("value", schema.arrow)]), Traced)


def test_a_lambda_that_calls_a_method_runs_as_python() -> None:
    schema = declared_schema(Order)
    assert schema is not None
    found = trace(lambda v: v.is_large(), [Argument("value", schema.arrow)])
    assert found == Untraceable("it calls the method is_large(), which is not traced")


def test_a_misspelled_field_of_a_class_is_an_error_of_the_program() -> None:
    builder = StreamsBuilder("misspelled")
    builder.stream("in", value=Order).filter(lambda v: v.amuont > 1).to("out")
    with pytest.raises(TopologyError, match='the value has no field "amuont"'), TestDriver(builder):
        pass


class TestInstances:
    ORDER = instance_class(Order)({"user": "ann", "amount": 1.0, "items": [], "keys": 2})

    def test_an_instance_equals_one_made_by_the_class_and_a_dict(self) -> None:
        assert Order("ann", 1.0, [], 2) == self.ORDER
        assert Order("ann", 1.0, [], 2) == self.ORDER
        assert Order("bob", 1.0, [], 2) != self.ORDER
        assert self.ORDER == {"user": "ann", "amount": 1.0, "items": [], "keys": 2}

    def test_an_instance_can_be_copied_pickled_and_replaced(self) -> None:
        for made in (copy.copy(self.ORDER), copy.deepcopy(self.ORDER), pickle.loads(pickle.dumps(self.ORDER))):
            assert made == self.ORDER
            assert made.is_large() is False
        assert dataclasses.replace(self.ORDER, amount=200.0).is_large()
        assert dataclasses.asdict(self.ORDER) == dict(self.ORDER)

    def test_an_instance_looks_like_one_of_its_class(self) -> None:
        assert repr(self.ORDER) == "Order(user='ann', amount=1.0, items=[], keys=2)"
        assert bool(self.ORDER)

    def test_an_error_inside_a_property_keeps_its_message(self) -> None:
        broken = instance_class(Order)({"user": "ann", "amount": 1.0, "items": [1], "keys": 2})
        with pytest.raises(AttributeError, match="'int' object has no attribute 'with_tax'"):
            _ = broken.total

    def test_a_frozen_instance_cannot_be_changed(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            instance_class(Point)({"x": 1, "y": 2}).x = 3
