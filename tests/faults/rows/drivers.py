"""Two processes run one query, because a lock was lost: the one that came first is refused, and has done no harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from potok import StreamsBuilder
from potok.runtime.queries.lock import QueryTakenOver
from tests.faults.numbers import Numbers, started
from tests.faults.orders import Orders
from tests.faults.row import Proof, row
from tests.faults.scene import Scene


def to_topic(prefix: str, watch: list[Any] | None) -> StreamsBuilder:
    builder, numbers = started(prefix, watch)
    numbers.to(f"{prefix}copy")
    return builder


def _both(scene: Scene, work: Orders | Numbers, home: Path) -> None:
    """Hold one in the middle of a batch while the other runs to the end; the first one must name the other."""
    gate = work.gate()
    first = work.start(gate=gate)
    scene.at_gate(gate, first)
    (home / "queries" / work.query / "lock").unlink()
    second = work.start()
    scene.ended(second).must_be_well()
    gate.let_go()
    name = f'query "{work.query}" was taken over by process {second.process.pid} on '
    ended = scene.ended(first).must_say(name, "stop that process first")
    assert ended.code == QueryTakenOver.exit_code


@row("two-drivers", "a second driver runs a query that one is running")
def two_drivers(scene: Scene) -> Proof:
    orders = Orders(scene)
    _both(scene, orders, orders.data)
    orders.run().must_be_well()
    return orders.prove("the second ran to the end; the first was refused by the state")


@row("two-drivers-kafka", "a second driver writes to Kafka for a query that one is running", servers=("kafka",))
def two_drivers_kafka(scene: Scene) -> Proof:
    home = scene.directory / "home"
    numbers = Numbers(scene, "tests.faults.rows.drivers:to_topic", log=scene.servers.kafka().url(home))
    _both(scene, numbers, home)
    numbers.run().must_be_well()
    return numbers.prove(numbers.topic("copy"), "the second ran to the end; the first was refused")
