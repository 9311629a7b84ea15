from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from potok.demo.orders import Shop, generate, rate_at
from potok.demo.shop import CITIES, GOODS, ORDERS
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord

NOW = 1_767_225_600_000
FIELDS = {"order_id": str, "user_id": str, "city": str, "amount": float, "items": list}


def is_well_formed(record: LogRecord) -> bool:
    assert record.value is not None
    try:
        order = orjson.loads(record.value)
    except orjson.JSONDecodeError:
        return False
    return all(isinstance(order.get(name), kind) for name, kind in FIELDS.items())


@pytest.fixture(scope="module")
def orders() -> list[LogRecord]:
    return Shop(7).orders(20_000, NOW)


def test_the_same_seed_makes_the_same_orders() -> None:
    assert Shop(7).orders(500, NOW) == Shop(7).orders(500, NOW)
    assert Shop(7).orders(500, NOW) != Shop(8).orders(500, NOW)


def test_an_order_is_priced_by_its_items_and_sent_from_a_city(orders: list[LogRecord]) -> None:
    for record in orders:
        if is_well_formed(record):
            order = orjson.loads(record.value or b"")
            assert order["amount"] == pytest.approx(sum(GOODS[item] for item in order["items"]))
            assert order["city"] in CITIES
            assert record.key == order["order_id"].encode()


def test_about_one_in_two_hundred_is_malformed_in_several_ways(orders: list[LogRecord]) -> None:
    bad = [record for record in orders if not is_well_formed(record)]

    assert 0.003 < len(bad) / len(orders) < 0.007
    kinds = Counter(b"a lot" in (r.value or b"") if (r.value or b"").endswith(b"}") else "cut" for r in bad)
    assert set(kinds) == {"cut", True, False}


def test_about_one_in_a_hundred_is_late_for_its_window_wherever_it_falls(orders: list[LogRecord]) -> None:
    size, grace = 10_000, 5_000
    behind = [NOW - record.timestamp_ms for record in orders]
    late = [ms for ms in behind if ms > 1_500]

    assert 0.007 < len(late) / len(orders) < 0.013
    # The stream time of a partition lags by at most the 1.5 seconds that an order in time may be old.
    assert all((NOW - ms) // size * size + size + grace <= NOW - 1_500 for ms in late)
    assert all(ms >= 0 for ms in behind)


def test_few_users_buy_much_and_many_buy_little(orders: list[LogRecord]) -> None:
    counts = Counter(orjson.loads(r.value or b"")["user_id"] for r in orders if is_well_formed(r))
    ranked = [n for _, n in counts.most_common()]

    assert len(ranked) > 1_500
    assert sum(ranked[:20]) > 0.1 * sum(ranked)
    assert ranked[0] > 5 * ranked[len(ranked) // 2]


def test_some_orders_are_worth_more_than_a_hundred(orders: list[LogRecord]) -> None:
    amounts = [orjson.loads(r.value or b"")["amount"] for r in orders if is_well_formed(r)]

    assert 0.08 < sum(amount > 100 for amount in amounts) / len(amounts) < 0.4


def test_the_rate_swings_around_what_was_asked_for() -> None:
    rates = [rate_at(1_000, tenth / 10) for tenth in range(6_000)]

    assert 700 < min(rates) < 900 < 1_100 < max(rates) < 1_300
    assert sum(rates) / len(rates) == pytest.approx(1_000, rel=0.02)


class Ticks(threading.Event):
    """An event that lets so many ticks pass, without waiting for them."""

    def __init__(self, ticks: int) -> None:
        super().__init__()
        self._left = ticks

    def wait(self, timeout: float | None = None) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(tmp_path)
    opened.create_topic(ORDERS, 2)
    yield opened
    opened.close()


def test_orders_are_appended_at_the_rate(broker: Broker) -> None:
    clock = itertools.count(step=0.1)

    sent = generate(broker, 1_000, Ticks(20), Shop(), lambda: next(clock))

    expected = sum(rate_at(1_000, tick / 10) * 0.1 for tick in range(1, 21))
    assert sent == pytest.approx(expected, abs=1)
    assert sum(broker.end_offsets(ORDERS).values()) == sent


def test_a_machine_that_was_asleep_gets_a_second_of_orders_and_not_an_hour(broker: Broker) -> None:
    times = iter([0.0, 3_600.0])

    assert generate(broker, 100, Ticks(1), Shop(), lambda: next(times)) <= 130
