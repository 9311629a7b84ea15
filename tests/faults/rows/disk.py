"""The disk is full: that of the state or the log. When there is room again, the next start resumes."""

from __future__ import annotations

from pathlib import Path

from tests.faults.orders import Orders
from tests.faults.row import Proof, row
from tests.faults.scene import Scene
from tests.faults.small_disk import small_disk


def _full(scene: Scene, place: str, *texts: str) -> Proof:
    path = Path(place.replace("QUERY", f"{scene.name}-orders-query"))
    with small_disk(scene.directory / "data" / path) as disk:
        orders = Orders(scene)
        gate = orders.gate()
        driver = orders.start(gate=gate)
        scene.at_gate(gate, driver)
        disk.fill()
        gate.let_go()
        scene.ended(driver).must_say(*texts)
        disk.make_room()
        committed = orders.check_snapshot()
        orders.run().must_be_well()
        done = f"no room at record {gate.number}; the query said so, and went on from {committed} when there was some"
        return orders.prove(done)


@row("disk-full-state", "no room for the state")
def disk_full_state(scene: Scene) -> Proof:
    return _full(scene, "queries/QUERY/state", "no space", "free some space")


@row("disk-full-log", "no room for the log")
def disk_full_log(scene: Scene) -> Proof:
    return _full(scene, "log", "no space", "free some space")
