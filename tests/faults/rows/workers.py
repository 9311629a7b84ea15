"""Processes that Spark runs for a query die, and the query goes on without being started again."""

from __future__ import annotations

import os
import signal
import time
from urllib.parse import urlsplit

import redis

from tests.faults.drive import processes_of
from tests.faults.gate import Stumble
from tests.faults.orders import Orders
from tests.faults.potok_commands import rebuild
from tests.faults.proxy import Proxy
from tests.faults.row import Proof, row
from tests.faults.scene import Scene


@row("worker-killed", "a Python worker of Spark's dies in the middle of a batch")
def worker_killed(scene: Scene) -> Proof:
    orders = Orders(scene)
    gate = orders.gate()
    driver = orders.start(gate=gate)
    worker = scene.at_gate(gate, driver)
    assert worker != driver.process.pid
    os.kill(worker, signal.SIGKILL)
    scene.ended(driver).must_be_well()
    return orders.prove(f"worker killed at record {gate.number}; Spark tried the task again, and the query went on")


@row("jvm-killed", "the JVM of Spark's driver dies in the middle of a batch")
def jvm_killed(scene: Scene) -> Proof:
    orders = Orders(scene)
    gate = orders.gate()
    driver = orders.start(gate=gate)
    scene.at_gate(gate, driver)
    (jvm,) = [process for process in processes_of(scene.name) if process.name() == "java"]
    jvm.kill()
    gate.let_go()
    scene.ended(driver).must_say("Spark's JVM is gone", "start the query again")
    committed = orders.check_snapshot()
    orders.run().must_be_well()
    return orders.prove(f"JVM {jvm.pid} killed, {committed} of {orders.records} records read; started again")


@row("task-fails-thrice", "a task fails three times, and then passes")
def task_fails_thrice(scene: Scene) -> Proof:
    orders, times = Orders(scene), 3
    number, fields = orders.some()
    stumble = Stumble(str(scene.place("stumble")), number, fields, times)
    orders.run(gate=stumble).must_be_well()
    assert stumble.stumbled() == times
    return orders.prove(f"the task with record {number} failed {times} times; Spark tried it again each time")


@row("state-unreachable", "Redis, which has the state, is not reached for a while", servers=("redis",))
def state_unreachable(scene: Scene) -> Proof:
    proxy = Proxy(int(urlsplit(scene.servers.redis()).port or 0))
    orders = Orders(scene, settings={"state": f"redis://127.0.0.1:{proxy.port}/0"})
    gate = orders.gate()
    driver = orders.start(gate=gate)
    scene.at_gate(gate, driver)
    proxy.shut()
    seconds = scene.random.choice((1, 5))
    try:
        gate.let_go()
        scene.wait_until(lambda: proxy.held, "somebody who wants to talk to Redis")
        time.sleep(seconds)
    finally:
        proxy.open()
    ended = scene.ended(driver)
    if ended.code:
        ended.must_say("cannot be reached", "hint:")
        orders.run().must_be_well()
    proven = orders.prove(f"Redis out of reach for {seconds} s: {'started again' if ended.code else 'waited for'}")
    proxy.close()
    return proven


@row("state-restarted", "Cassandra, which has the state, is killed three times under load", servers=("cassandra",))
def state_restarted(scene: Scene) -> Proof:
    server = scene.servers.cassandra()
    orders = Orders(scene, settings={"state": server.url})
    gate = orders.gate()
    driver = orders.start(gate=gate)
    scene.at_gate(gate, driver)
    server.stop(signal.SIGKILL)
    try:
        gate.let_go()
        time.sleep(scene.random.choice((0, 3)))
    finally:
        server.start()
    for _ in range(2):
        time.sleep(scene.random.random())
        server.stop(signal.SIGKILL)
        server.start()
    ended = scene.ended(driver)
    if ended.code:
        ended.must_say("cannot be", "hint:")
        orders.run().must_be_well()
    return orders.prove(f"Cassandra killed 3 times: {'started again' if ended.code else 'waited for'}")


@row("state-gone", "Redis loses all state while a query runs", servers=("redis",))
def state_gone(scene: Scene) -> Proof:
    orders = Orders(scene, settings={"state": scene.servers.redis()})
    gate = orders.gate()
    driver = orders.start(gate=gate)
    scene.at_gate(gate, driver)
    client = redis.Redis.from_url(scene.servers.redis())
    lost = [name for name in client.scan_iter("*") if orders.query.encode() in name]
    client.delete(*lost)
    gate.let_go()
    scene.ended(driver).must_say("is missing", "was committed", "potok run PROGRAM --shadow")
    rebuild(orders)
    orders.run().must_be_well()
    return orders.prove(f"{len(lost)} keys of Redis deleted: the query stopped; its tables were built anew")
