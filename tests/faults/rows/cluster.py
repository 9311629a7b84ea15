"""The engine on several executors, each a process of its own: the log on Kafka, the state on Redis."""

from __future__ import annotations

import copy
import random

import psutil

from potok.snapshots.tables import Tables
from tests.faults.orders import Orders
from tests.faults.row import Proof, row
from tests.faults.scene import Scene

EXECUTOR = "CoarseGrainedExecutorBackend"

LARGE: dict[str, int] = {"partitions": 2, "padding": 20_000}
"""So that a task has more output for a partition than it would hand back if there were a disk to put it on."""


def on_executors(scene: Scene) -> Orders:
    """Orders on Kafka, with state and ledger on Redis, for a query on two executors that share its batches."""
    kafka, redis = scene.servers.kafka(), scene.servers.redis()
    spark = scene.servers.spark()
    settings = {"state": redis, "master": spark.url, "spark": dict(spark.settings)}
    orders = Orders(scene, kafka.url(redis), settings=settings, **LARGE)
    orders.shards, orders.spread, orders.batch = 2, True, orders.records // 4
    orders.environment = spark.environment
    # What a task writes to the disk of the driver's machine would not be there on a cluster: nobody can write here.
    staging = scene.directory / "data" / "queries" / orders.query / "staging"
    staging.parent.mkdir(parents=True)
    staging.touch()
    return orders


def executor_of(worker: int) -> psutil.Process:
    """The executor for which a Python worker works."""
    return next(found for found in psutil.Process(worker).parents() if EXECUTOR in " ".join(found.cmdline()))


@row("cluster", "a query runs on two executors, with Kafka and Redis, and on one machine", servers=("kafka", "redis"))
def cluster(scene: Scene) -> Proof:
    state = scene.random.getstate()
    spread = on_executors(scene)
    spread.run().must_be_well()
    spread.prove("")
    single = copy.copy(scene)
    single.random = random.Random()
    single.random.setstate(state)
    single.directory = scene.place("single")
    embedded = Orders(single, **LARGE)
    embedded.run().must_be_well()
    with spread.log() as there, embedded.log() as here:
        tables = [Tables(log, spread.query).snapshot() for log in (there, here)]
    assert tables[0] == tables[1], "the tables differ"
    return embedded.prove("two executors, Kafka and Redis; one process, the embedded log and LMDB: the same tables")


@row("executor-killed", "one of two executors dies in the middle of a batch", servers=("kafka", "redis"))
def executor_killed(scene: Scene) -> Proof:
    orders = on_executors(scene)
    gate = orders.gate()
    driver = orders.start(gate=gate)
    executor = executor_of(scene.at_gate(gate, driver))
    executor.kill()
    # Its worker lives on for a moment, and may write what nobody waits for.
    gate.let_go()
    scene.ended(driver).must_be_well()
    return orders.prove(f"executor {executor.pid} killed; Spark gave its tasks to the other one")
