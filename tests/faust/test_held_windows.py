"""Records in windows that agents have in hand: changed in place as any object, and taken back as any change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess

MINUTE = 60_000


class Paid(faust.Record):
    user: str
    amount: int


class Stats(faust.Record):
    total: int
    seen: list  # type: ignore[type-arg]


class Oddly(faust.Record):
    total: int
    value: int


class Doubled(faust.Record):
    total: int

    @property
    def twice(self) -> int:
        return self.total * 2

    @twice.setter
    def twice(self, twice: int) -> None:
        self.total = twice // 2


def driven(work: Callable[[Any, Any], Any], default: Callable[[], Any], payments: list[tuple[int, int]]) -> Any:
    """The windows and the steps of the dead letters after payments of "u", given as (minute, amount)."""
    app = faust.App("app")
    topic = app.topic("payments", value_type=Paid)
    windows = app.Table("sums", default=default).tumbling(60, expires=600)

    @app.agent(topic)
    async def count(stream: Any) -> None:
        early = windows["u"]
        async for paid in stream:
            work(early if paid.amount < 0 else windows[paid.user], paid)

    with InProcess(app) as driver:
        for minute, amount in payments:
            driver.send("payments", {"user": "u", "amount": amount}, timestamp=minute * MINUTE)
        driver.run()
        found = {key.start_ms // MINUTE: value for key, value in driver.table("sums").windows("u")}
        return found, [letter.step for letter in driver.dead_letters()]


def add(stats: Any, paid: Any) -> None:
    stats.total += abs(paid.amount)
    stats.seen.append(paid.amount)
    if paid.amount in (7, -7):
        raise ValueError("seven")


def test_what_is_changed_in_place_is_kept_in_the_window_of_its_record() -> None:
    found, letters = driven(add, lambda: Stats(0, []), [(0, 1), (0, 2), (1, 3), (0, 4)])
    assert found == {0: {"total": 7, "seen": [1, 2, 4]}, 1: {"total": 3, "seen": [3]}}
    assert letters == []


def test_what_a_record_that_raises_has_changed_is_taken_back() -> None:
    found, letters = driven(add, lambda: Stats(0, []), [(0, 1), (0, 7), (0, 2), (1, 7)])
    assert found == {0: {"total": 3, "seen": [1, 2]}}
    assert letters == ["count", "count"]


def test_windows_that_were_asked_for_with_an_earlier_record_are_those_of_the_record_at_hand() -> None:
    found, letters = driven(add, lambda: Stats(0, []), [(0, -1), (0, -2), (1, -3), (1, -7), (0, -4), (1, 5)])
    assert found == {0: {"total": 7, "seen": [-1, -2, -4]}, 1: {"total": 8, "seen": [-3, 5]}}
    assert letters == ["count"]


@pytest.mark.parametrize("default", [lambda: Oddly(0, 1), lambda: Doubled(0)])
def test_records_that_are_more_than_their_fields_are_changed_by_their_own_rules(default: Any) -> None:
    def work(stats: Any, paid: Any) -> None:
        if isinstance(stats.value(), Doubled):
            stats.twice = stats.twice + 2 * paid.amount
        else:
            stats.total += stats.value().value * paid.amount

    found, letters = driven(work, default, [(0, 1), (0, 2)])
    assert (found[0]["total"], letters) == (3, [])


def test_a_value_that_was_replaced_is_the_one_that_is_changed_then() -> None:
    def work(stats: Any, paid: Any) -> None:
        stats.total += paid.amount
        stats.table["u"] = Stats(100, [])
        stats.total += paid.amount
        stats.table["u"].seen.append(paid.amount)

    found, _ = driven(work, lambda: Stats(0, []), [(0, 1), (0, 2)])
    assert found == {0: {"total": 102, "seen": [2]}}


def test_the_value_itself_can_be_changed_and_put_back_but_not_into_a_window_that_is_over() -> None:
    def work(stats: Any, paid: Any) -> None:
        value = stats.value()
        value.total += paid.amount
        stats.table["u"] = value

    found, letters = driven(work, lambda: Stats(0, []), [(0, 1), (0, 2), (30, 3), (0, 4), (30, 5)])
    assert {minute: value["total"] for minute, value in found.items()} == {30: 8}
    assert letters == ["count"]
