"""Kafka dies, or is not reached, while a query runs."""

from __future__ import annotations

import time

from tests.faults.drive import Driver, Ended
from tests.faults.orders import Orders
from tests.faults.proxy import PRODUCE
from tests.faults.row import Proof, row
from tests.faults.scene import Scene

IMPATIENT = {"socket_timeout_ms": "2000", "request_timeout_ms": "1500", "message_timeout_ms": "3000"}
"""A client that gives up on what it sends after seconds, not after minutes."""


def _on_kafka(scene: Scene, **options: str) -> Orders:
    return Orders(scene, scene.servers.kafka().url(scene.directory / "home", **options))


def _ended(orders: Orders, driver: Driver) -> str:
    """A query may live through it; one that gave up says why, and goes on when it is started again."""
    found: Ended = orders.scene.ended(driver)
    if found.code == 0:
        return "the query lived through it"
    found.must_say("Kafka", "hint:")
    orders.check_snapshot()
    orders.run().must_be_well()
    return "the query gave up, said why, and went on when it was started again"


@row("kafka-killed", "Kafka dies in the middle of a batch, and starts again", servers=("kafka",))
def kafka_killed(scene: Scene) -> Proof:
    orders, kafka = _on_kafka(scene), scene.servers.kafka()
    gate = orders.gate()
    driver = orders.start(gate=gate)
    scene.at_gate(gate, driver)
    kafka.kill()
    gate.let_go()
    kafka.start()
    return orders.prove(f"Kafka killed at record {gate.number} and started again: {_ended(orders, driver)}")


@row("kafka-unreachable", "Kafka is not reached for a while", servers=("kafka",))
def kafka_unreachable(scene: Scene) -> Proof:
    orders, proxy = _on_kafka(scene), scene.servers.kafka().proxy
    gate = orders.gate()
    driver = orders.start(gate=gate)
    scene.at_gate(gate, driver)
    proxy.shut()
    seconds = scene.random.choice((2, 10, 40))
    try:
        gate.let_go()
        scene.wait_until(lambda: proxy.held, "somebody who wants to talk to Kafka")
        time.sleep(seconds)
    finally:
        proxy.open()
    return orders.prove(f"Kafka out of reach for {seconds} s: {_ended(orders, driver)}")


@row("kafka-produce-timeout", "the connection over which records go to Kafka stalls", servers=("kafka",))
def kafka_produce_timeout(scene: Scene) -> Proof:
    orders, proxy = _on_kafka(scene, **IMPATIENT), scene.servers.kafka().proxy
    gate = orders.gate()
    driver = orders.start(gate=gate)
    scene.at_gate(gate, driver)
    proxy.shut(PRODUCE)
    try:
        gate.let_go()
        scene.wait_until(lambda: proxy.held, "a request that brings records")
        # Longer than the client waits, so that the transaction must be given up.
        time.sleep(5)
    finally:
        proxy.open()
    return orders.prove(f"records on their way to Kafka held for 5 s: {_ended(orders, driver)}")


@row("kill-log.publish.sent", "the driver dies after Kafka has committed, before the ledger knows", servers=("kafka",))
def kill_after_kafka(scene: Scene) -> Proof:
    orders = _on_kafka(scene)
    batch = scene.random.randint(1, 4)
    orders.run(failpoint=f"log.publish.sent:{batch}").must_be_killed()
    orders.run().must_be_well()
    return orders.prove(f"killed after batch {batch} was in Kafka and not in the ledger")
