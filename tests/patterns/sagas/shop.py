"""A shop with one order in each state, for those who read and control instances."""

from __future__ import annotations

from pathlib import Path

from patterns.sagas.checkout import NO_STOCK, event, play, program
from potok.testing import TestDriver


def fill(directory: Path) -> TestDriver:
    """Return a driver whose orders are `done`, `gone`, `stuck`, `undoing`, `waiting` and `waiting/2`."""
    driver = TestDriver(program(), directory=directory)
    for order in ("done", "gone", "stuck"):
        play(driver, event("order.created", order, amount=5.0, item="book"))
    play(driver, event("payment.failed", "gone", reason="no money"))
    driver.wait("10 s")
    play(driver, event("payment.failed", "gone", number=2, reason="no money"))
    driver.wait("10 s")
    play(driver, event("payment.failed", "gone", number=3, reason="no money"))
    for order in ("done", "stuck"):
        play(driver, event("payment.processed", order, payment_id="p1"))
    play(driver, event("inventory.reserved", "done"), event("inventory.failed", "stuck"))
    for _ in range(3):
        driver.wait("15 min")
        driver.wait("10 s")
    play(driver, event("order.created", "undoing", amount=1.0, item="cup"))
    play(driver, event("payment.processed", "undoing", payment_id="p2"))
    play(driver, NO_STOCK | {"event_id": "n2", "data": {"order_id": "undoing"}})
    for order in ("waiting", "waiting/2"):
        play(driver, event("order.created", order, amount=1.0, item="cup"))
    return driver


STATES = {
    "done": "completed",
    "gone": "aborted",
    "stuck": "stuck",
    "undoing": "aborting",
    "waiting": "running",
    "waiting/2": "running",
}
