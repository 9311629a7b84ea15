"""Commands of a saga that leave the log: under their idempotency keys, and never from a replay or a shadow."""

from __future__ import annotations

from pathlib import Path

import pytest

import potok
from patterns.sagas.checkout import CREATED, PAID, REFUSED, Checkout, play, sent, state
from potok.runtime.operations.replay import with_prefix
from potok.runtime.operations.shadow import shadow_of
from potok.testing import TestDriver
from tests.sinks.web import Site, web_server


def calling(url: str) -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("shop")
    saga = builder.saga(Checkout, events="order-events", commands="commands", emits="out")
    saga.commands.to_http(url)
    return builder


def test_requests_carry_saga_instance_step_and_attempt() -> None:
    with web_server() as site, TestDriver(calling(site.url)) as driver:
        play(driver, CREATED, REFUSED)
        driver.wait("10 s")
        play(driver, PAID)
        assert [key for key, _ in site.requests] == [
            "checkout/o1/payment/1",
            "checkout/o1/payment/2",
            "checkout/o1/stock/1",
        ]


@pytest.mark.parametrize("prefix", ["shadow-", "try-"])
def test_replays_and_shadows_send_nothing_outside(prefix: str, tmp_path: Path) -> None:
    def requests(site: Site) -> int:
        return len(site.requests)

    with web_server() as site, TestDriver(calling(site.url), directory=tmp_path) as driver:
        play(driver, CREATED, PAID)
        assert requests(site) == 2
        topology = calling(site.url).build()
        copy = shadow_of(topology) if prefix == "shadow-" else with_prefix(topology, prefix)
        again = TestDriver(copy, directory=tmp_path)
        again.run()
        assert state(again) == "running"
        assert sent(again, f"{prefix}commands") == ["ProcessPayment", "ReserveItems"]
        again.leave()
        assert requests(site) == 2 and sent(driver) == ["ProcessPayment", "ReserveItems"]
