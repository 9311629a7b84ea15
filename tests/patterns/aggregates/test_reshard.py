"""Aggregates whose cells are moved to other shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from patterns.aggregates.orders import CreateOrder, PayOrder, program, results, send
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.runtime.operations.reshard import reshard
from potok.testing import TestDriver

KEYS = [f"o{number}" for number in range(20)]


@pytest.mark.parametrize("after", [3, 1])
def test_states_and_results_move_with_their_aggregates(tmp_path: Path, after: int) -> None:
    with TestDriver(program(), directory=tmp_path, shards=2) as driver:
        for key in KEYS:
            send(driver, CreateOrder(key, 5.0), key, command_id="create")
        driver.run()
        before = driver.table("orders").all()
    reshard(program().build(), EmbeddedBroker.shared(tmp_path), after)
    with TestDriver(program(), directory=tmp_path, shards=after) as driver:
        assert driver.table("orders").all() == before
        for key in KEYS:
            send(driver, CreateOrder(key, 5.0), key, command_id="create")
            send(driver, PayOrder(key), key, expected_version=1)
        driver.run()
        for key in KEYS:
            found = [(one.status, one.version) for one in results(driver, key)]
            assert found == [("accepted", 1), ("accepted", 1), ("accepted", 2)]
