"""Joins by a foreign key: one change on the right changes all rows that refer to it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from operators.core.agreement import Sent, check
from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.errors import TopologyError
from potok.topology.nodes.windows import tumbling_ms

ORDER, CUSTOMER = "customer string, amount bigint", "name string"


def random_changes(seed: int, count: int = 50) -> list[Sent]:
    """Orders that come, change their customer and go, and customers that do so too."""
    random = Random(seed)
    sent = []
    for at in range(count):
        gone = random.random() < 0.25
        if random.random() < 0.6:
            order = {"customer": random.choice(["x", "y", "", None]), "amount": random.randrange(4)}
            sent.append(Sent("orders", random.choice("abcde"), None if gone else order, at))
        else:
            customer = {"name": random.choice(["Ann", "Bob"])}
            sent.append(Sent("customers", random.choice(["x", "y", "", "z"]), None if gone else customer, at))
    return sent


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "dynamic"])
@pytest.mark.parametrize("seed", [1, 2])
def test_both_kinds_agree_with_one_that_looks_through_all_rows(typed: bool, seed: int) -> None:
    def program(builder: StreamsBuilder) -> None:
        orders = builder.table("orders", value=ORDER if typed else None)
        customers = builder.table("customers", value=CUSTOMER if typed else None)
        inner = orders.join(customers, lambda order, c: [order["amount"], c["name"]], on="customer", name="inner")
        inner.to_stream().to("changes")
        orders.left_join(customers, on=lambda k, v: v["customer"], name="left")
        inner.group_by(lambda k, v: v[1]).sum(lambda v: v[0], name="per_name")

    check(program, random_changes(seed), seed)


@pytest.mark.parametrize("spread", [False, True])
def test_one_change_on_the_right_updates_all_that_refer_to_it(spread: bool) -> None:
    builder = StreamsBuilder("q")
    orders, customers = builder.table("orders"), builder.table("customers")
    orders.join(customers, lambda k, order, c: [k, c["name"]], on="c", name="t").to_stream().to("out")
    with InProcess(builder, shards=3, spread=spread) as driver:
        for number in range(20):
            driver.send("orders", {"c": "x" if number % 2 else "xx"}, f"o{number}", timestamp=number)
        driver.send("customers", {"name": "Ann"}, "x", timestamp=50)
        driver.run()
        assert driver.table("t").all() == {f"o{n}": [f"o{n}", "Ann"] for n in range(1, 20, 2)}
        driver.send("customers", {"name": "Eve"}, "x", timestamp=60)
        driver.run()
        assert set(map(tuple, driver.table("t").all().values())) == {(f"o{n}", "Eve") for n in range(1, 20, 2)}
        driver.send("customers", None, "x", timestamp=70)
        driver.run()
        assert driver.table("t").all() == {}
        changes = driver.read("out")
        assert len(changes) == 30
        assert {row.timestamp_ms for row in changes} == {50, 60, 70}


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_a_row_that_refers_to_another_leaves_the_old_one_in_one_change(shards: int) -> None:
    builder = StreamsBuilder("q")
    orders, customers = builder.table("orders"), builder.table("customers")
    orders.join(customers, lambda order, c: c["name"], on="c", name="t").to_stream().to("out")
    with InProcess(builder, shards=shards, spread=True) as driver:
        for key, name in (("x", "Ann"), ("y", "Bob"), ("z", "Bob")):
            driver.send("customers", {"name": name}, key, timestamp=1)
        for foreign in ("x", "y", "z"):
            driver.send("orders", {"c": foreign}, "o", timestamp=2)
            driver.run()
        driver.send("customers", {"name": "stale"}, "x", timestamp=3)
        driver.send("orders", {"c": "x"}, "o", timestamp=3)
        driver.send("orders", {"c": "y"}, "o", timestamp=3)
        driver.run()
        assert [row.value for row in driver.read("out")] == ["Ann", "Bob"]
        assert driver.table("t").all() == {"o": "Bob"}


def test_keys_of_any_length_find_their_rows() -> None:
    def program(builder: StreamsBuilder) -> None:
        builder.table("orders").join(builder.table("customers"), on="customer", name="t")

    long = ["x" * 440, "x" * 441, "x" * 500, "x" * 500 + "y"]
    sent = [Sent("orders", f"{n}{'k' * n}", {"customer": long[n % 4]}) for n in range(0, 40, 3)]
    sent += [Sent("customers", key, {"name": key[-1]}) for key in long]
    check(program, sent)


def test_the_key_that_a_row_refers_to_has_the_type_of_the_other_table() -> None:
    def program(builder: StreamsBuilder) -> None:
        customers = builder.table("customers", key=int, value=CUSTOMER)
        builder.table("orders").left_join(customers, lambda order, c: c and c["name"], on="customer", name="dynamic")
        builder.table("typed", value="customer bigint").join(customers, on="customer", name="t")

    sent = [Sent("orders", "a", {"customer": 7}), Sent("typed", "b", {"customer": 7})]
    check(program, [*sent, Sent("customers", 7, {"name": "Ann"}), Sent("customers", 8, {"name": "Bob"})])


def test_a_typed_key_finds_the_rows_of_a_table_with_dynamic_keys() -> None:
    builder = StreamsBuilder("q")
    customers = builder.table("customers", key=None)
    builder.table("orders", value=ORDER).join(customers, on="customer", name="t")
    with InProcess(builder) as driver:
        driver.send("customers", {"name": "Ann"}, b'"x"', timestamp=1)
        driver.send("orders", {"customer": "x", "amount": 1}, "a", timestamp=1)
        driver.run()
        assert driver.table("t").get("a")["right"] == {"name": "Ann"}


def test_a_row_whose_functions_raise_is_deleted_and_set_aside() -> None:
    builder = StreamsBuilder("q")
    orders, customers = builder.table("orders"), builder.table("customers")
    orders.join(customers, lambda order, c: 6 // c["n"], on=lambda v: v["c"], name="t")
    with InProcess(builder) as driver:
        driver.send("customers", {"n": 2}, "x", timestamp=1)
        driver.send("orders", {"c": "x"}, "a", timestamp=1)
        driver.send("orders", {"c": "x"}, "b", timestamp=1)
        driver.run()
        assert driver.table("t").all() == {"a": 3, "b": 3}
        driver.send("orders", {}, "a", timestamp=2)
        driver.run()
        assert driver.table("t").all() == {"b": 3}
        driver.send("customers", {"n": 0}, "x", timestamp=2)
        driver.run()
        assert driver.table("t").all() == {}
        driver.send("customers", {"n": 1}, "x", timestamp=3)
        driver.run()
        assert driver.table("t").all() == {"b": 6}
        assert driver.reasons() == [("t", "error"), ("t", "error")]


def test_a_restart_between_batches_loses_no_reference() -> None:
    builder = StreamsBuilder("q")
    builder.table("orders").join(builder.table("customers"), lambda order, c: c, on="c", name="t")
    with InProcess(builder) as driver:
        driver.send("orders", {"c": "x"}, "a", timestamp=1)
        driver.run()
        driver.restart()
        driver.send("customers", 1, "x", timestamp=1)
        driver.run()
        assert driver.table("t").all() == {"a": 1}


def test_a_table_may_refer_to_itself() -> None:
    def program(builder: StreamsBuilder) -> None:
        people = builder.table("people")
        people.left_join(people, lambda person, boss: boss and boss["name"], on="boss", name="bosses")

    random = Random(5)
    names = "abcd"
    rows = [{"name": random.choice("XYZ"), "boss": random.choice([*names, None])} for _ in range(30)]
    check(program, [Sent("people", random.choice(names), random.choice([row, row, None])) for row in rows])


def test_type_errors_are_found_before_anything_runs() -> None:
    builder = StreamsBuilder("q")
    builder.table("orders", value="customer bigint").join(builder.table("customers"), on="customer", name="t")
    with pytest.raises(TopologyError, match='returns int64, but the keys of table "customers" are string'):
        builder.build()
    windows = StreamsBuilder("q")
    counts = windows.stream("s").group_by_key().windowed_by(tumbling_ms(10, 0, 10)).count(name="w")
    counts.join(windows.table("t"), on=lambda v: "x", name="j")
    with pytest.raises(TopologyError, match="cannot be joined by a foreign key"):
        windows.build()


def test_the_description_says_what_is_joined_on_what(capsys: Any) -> None:
    builder = StreamsBuilder("q")
    builder.table("orders").join(builder.table("customers"), on="customer_id", name="t")
    assert 'inner join of orders and customers on field "customer_id"' in builder.describe()


@pytest.mark.parametrize("spread", [False, True])
def test_a_dead_letter_is_the_record_that_changed_a_row(spread: bool) -> None:
    builder = StreamsBuilder("q")
    orders, customers = builder.table("orders"), builder.table("customers")
    orders.join(customers, lambda order, c: order["n"] // c["n"], on="c", name="t").map_values(lambda v: 1 // v)
    with InProcess(builder, spread=spread) as driver:
        driver.send("customers", {"n": 1}, "x", timestamp=1)
        driver.send("orders", {"c": "x", "n": 1}, "a", timestamp=1)
        driver.send("orders", {"c": "x", "n": 0}, "b", timestamp=1)
        driver.run()
        driver.send("customers", {"n": 0}, "x", timestamp=2)
        driver.run()
        places = [(letter.step, letter.topic, letter.offset) for letter in driver.dead_letters()]
        assert places == [("t.map_values", "orders", 1), ("t", "customers", 1), ("t", "customers", 1)]
        (letter, *_) = (letter for letter in driver.dead_letters() if letter.step == "t")
        assert (letter.key, letter.value) == (b"x", b'{"n":0}')
        assert "left is {'c': 'x', 'n': 1}, right {'n': 0}" in letter.error
