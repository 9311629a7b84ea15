"""What the driver says to somebody whose test goes wrong."""

from __future__ import annotations

import pytest

from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.log.errors import TopicNotFound


def build() -> StreamsBuilder:
    builder = StreamsBuilder("shop")
    builder.stream("orders").map_values(lambda v: v["amount"], name="amounts").to("large-orders")
    return builder


def test_a_topic_that_is_misspelt_is_answered_with_one_that_is_there() -> None:
    with InProcess(build()) as driver:
        with pytest.raises(TopicNotFound) as sent:
            driver.send("ordes", {})
        with pytest.raises(TopicNotFound) as read:
            driver.read("large-order")
        with pytest.raises(TopicNotFound) as other:
            driver.read("xyz")
    assert (sent.value.hint, read.value.hint) == ("did you mean orders?", "did you mean large-orders?")
    assert other.value.hint == "the topics are: large-orders, orders, shop-dead-letters"


def test_dead_letters_are_logged_so_that_a_failing_test_shows_them(caplog: pytest.LogCaptureFixture) -> None:
    with InProcess(build()) as driver:
        driver.send("orders", {"price": 1})
        driver.run()
        assert driver.read("large-orders") == []
    (record,) = caplog.records
    assert "KeyError" in record.getMessage() and "driver.dead_letters()" in record.getMessage()
