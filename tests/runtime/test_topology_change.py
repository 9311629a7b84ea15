"""A changed topology goes on from its checkpoint where its state still fits, and is refused where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from potok import StreamsBuilder, minutes, tumbling
from potok.runtime.queries.prepare import changes_of
from potok.testing import TestDriver
from potok.topology.compare import StateDoesNotFit

pytestmark = pytest.mark.spark


def program(*, least: int = 0, window: int = 0, extra: bool = False, renamed: bool = False) -> StreamsBuilder:
    builder = StreamsBuilder("changing")
    orders = builder.stream("orders", value="user string, amount bigint")
    grouped = orders.filter(lambda v: v["amount"] >= least).group_by("user")
    if window:
        grouped.windowed_by(tumbling(minutes(window))).count(name="counts")
    else:
        grouped.count(name="other" if renamed else "counts")
    if extra:
        builder.stream("payments", value="user string").group_by("user").count(name="payments_per_user")
    return builder


def order(driver: TestDriver, amount: int) -> None:
    driver.send("orders", {"user": "ann", "amount": amount}, key="k", timestamp=1_000)


def test_an_edited_lambda_applies_to_the_records_that_follow(spark: Any) -> None:
    with TestDriver(program()) as driver:
        order(driver, 1)
        driver.run()
        assert [change.fits for change in changes_of(program(least=5).build(), driver.broker)] == [True]
        driver.replace(program(least=5))
        order(driver, 1)
        order(driver, 9)
        driver.run()
        assert driver.table("counts").all() == {"ann": 2}


def test_a_new_topic_and_a_new_table_start_where_they_are_added(spark: Any) -> None:
    with TestDriver(program()) as driver:
        order(driver, 1)
        driver.run()
        driver.replace(program(extra=True))
        driver.send("payments", {"user": "bob"})
        order(driver, 1)
        driver.run()
        assert driver.table("counts").all() == {"ann": 2}
        assert driver.table("payments_per_user").all() == {"bob": 1}


def test_a_window_where_there_was_none_is_refused_before_anything_is_touched(spark: Any) -> None:
    with TestDriver(program()) as driver:
        order(driver, 1)
        driver.run()
        with pytest.raises(StateDoesNotFit, match="window was none and is tumbling 1m"):
            driver.replace(program(window=1))
        driver.replace(program())
        assert driver.table("counts").all() == {"ann": 1}


def test_a_table_that_comes_back_starts_empty(spark: Any) -> None:
    """Its old rows would be out of date: it was not kept for a while."""
    with TestDriver(program()) as driver:
        order(driver, 1)
        driver.run()
        driver.replace(program(renamed=True))
        order(driver, 1)
        driver.run()
        driver.replace(program())
        order(driver, 1)
        driver.run()
        assert driver.table("counts").all() == {"ann": 1}
