"""The process that runs a query dies: at each step that makes something durable, and whenever else it may."""

from __future__ import annotations

from tests.faults.orders import Orders
from tests.faults.row import Proof, row
from tests.faults.scene import Scene

STARTING = ("epoch.before", "epoch.started")
"""Where it dies before the first batch: killed there twice, after batches were committed and before."""

COMMITTING = (
    "ledger.before",
    "log.publish.before",
    "log.publish.written",
    "log.publish.synced",
    "log.publish.committed",
    "ledger.committed",
    "batch.done",
)
IN_TASKS = ("state.before", "state.written")
"""Where the workers of Spark's tasks die, as often as they try: Spark gives up."""


def _kill_at_start(failpoint: str, scene: Scene) -> Proof:
    orders = Orders(scene)
    orders.run(failpoint=failpoint).must_be_killed()
    assert orders.check_snapshot() == 0
    orders.run(failpoint=f"ledger.committed:{scene.random.randint(1, 3)}").must_be_killed()
    orders.run(failpoint=failpoint).must_be_killed()
    committed = orders.check_snapshot()
    orders.run().must_be_well()
    return orders.prove(f"killed at {failpoint} with nothing, and with {committed} of {orders.records} records read")


def _kill_at_commit(failpoint: str, scene: Scene) -> Proof:
    orders = Orders(scene)
    batch = scene.random.randint(1, 4)
    orders.run(failpoint=f"{failpoint}:{batch}").must_be_killed()
    committed = orders.check_snapshot()
    assert committed < orders.records, "the kill came too late to prove anything"
    orders.run().must_be_well()
    return orders.prove(f"killed at {failpoint} of batch {batch}, {committed} of {orders.records} records read")


def _kill_in_tasks(failpoint: str, scene: Scene) -> Proof:
    orders = Orders(scene)
    batches = scene.random.randint(1, 3)
    orders.run(failpoint=f"ledger.committed:{batches}").must_be_killed()
    orders.run(failpoint=failpoint).must_say(
        "orders-query", "worker", "nothing of the batch is visible; start the query again"
    )
    committed = orders.check_snapshot()
    assert 0 < committed < orders.records
    orders.run().must_be_well()
    return orders.prove(f"every worker of a batch killed at {failpoint}, after {batches} batches")


for _point in STARTING:
    row(f"kill-{_point}", f"the driver dies at {_point}")(lambda scene, point=_point: _kill_at_start(point, scene))
for _point in IN_TASKS:
    row(f"kill-{_point}", f"Spark's workers die at {_point}, all of them")(
        lambda scene, point=_point: _kill_in_tasks(point, scene)
    )
for _point in COMMITTING:
    row(f"kill-{_point}", f"the driver dies at {_point}")(lambda scene, point=_point: _kill_at_commit(point, scene))


@row("kill-anywhere", "the driver dies three times, each time at some other moment of a batch")
def kill_anywhere(scene: Scene) -> Proof:
    orders = Orders(scene)
    times = 3
    for number in range(times):
        gate = orders.gate(number / 5, (number + 1) / 5)
        driver = orders.start(gate=gate)
        scene.at_gate(gate, driver)
        driver.kill().must_be_killed()
        # Its JVM and its workers still live for a moment; the next start must not mind.
        orders.check_snapshot()
    committed = orders.check_snapshot()
    orders.run().must_be_well()
    return orders.prove(f"killed in the middle of {times} batches, {committed} of {orders.records} records read")
