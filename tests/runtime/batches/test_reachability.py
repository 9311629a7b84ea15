"""On several machines, neither the log nor the state may be a directory of one of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from potok import StreamsBuilder
from potok.backends.state_url import Where
from potok.runtime.batches.reachability import OutOfReach, check_reach, on_one_machine
from potok.state.open import StateLocation
from potok.topology.execution_plan import Plan, make_plan

CLUSTER = "spark://host:7077"
KAFKA: Any = SimpleNamespace(url="kafka://host:9092")
EMBEDDED: Any = SimpleNamespace(url="file:data")
REDIS = StateLocation(Where.of("redis://host:6379/0"), "shop")


def plan(*, with_state: bool) -> Plan:
    builder = StreamsBuilder("shop")
    orders = builder.stream("orders")
    if with_state:
        orders.group_by_key().count(name="counts")
    else:
        orders.to("copy")
    return make_plan(builder.build(), 2)


def test_the_embedded_log_is_out_of_reach_of_a_cluster() -> None:
    with pytest.raises(OutOfReach, match="file:data") as caught:
        check_reach(CLUSTER, EMBEDDED, plan(with_state=False), REDIS)
    assert 'broker="kafka://' in caught.value.hint


def test_state_on_one_disk_is_out_of_reach_of_a_cluster(tmp_path: Path) -> None:
    other = StateLocation(Where.of(tmp_path), "shop")
    with pytest.raises(OutOfReach, match="state") as caught:
        check_reach(CLUSTER, KAFKA, plan(with_state=True), other)
    assert 'state="redis://' in caught.value.hint
    check_reach(CLUSTER, KAFKA, plan(with_state=False), other)
    check_reach(CLUSTER, KAFKA, plan(with_state=True), REDIS)


@pytest.mark.parametrize("master", ["local", "local[*,4]", "local-cluster[2,1,1024]"])
def test_all_of_it_is_in_reach_on_one_machine(master: str, tmp_path: Path) -> None:
    check_reach(master, EMBEDDED, plan(with_state=True), StateLocation(Where.of(tmp_path), "shop"))
    assert on_one_machine(master) == (master != "local-cluster[2,1,1024]")
