"""The bookkeeping of one endpoint, without threads and clocks."""

from __future__ import annotations

import random

import pytest

from potok.runtime.webhooks.receiver import MOST_PENDING, READ_AHEAD, UNHEALTHY, Receiver
from potok.runtime.webhooks.records import Attempt, Delivery, Outcome

STEP, ENDPOINT = "orders.to_webhook", "shop"


def delivery(offset: int, step: str = STEP) -> Delivery:
    return Delivery(offset, f"msg_{offset}", step, 0, b"{}")


def attempt(offset: int, outcome: Outcome, at: int = 0, number: int = 1, next_at: int | None = None) -> Attempt:
    return Attempt(f"msg_{offset}", STEP, ENDPOINT, outcome, offset, at, number, next_at=next_at)


def reading(count: int) -> Receiver:
    receiver = Receiver(STEP, ENDPOINT, 0)
    for offset in range(count):
        receiver.read(delivery(offset), 0)
    return receiver


def started(receiver: Receiver, now_ms: int = 0, concurrency: int = 4) -> list[int]:
    return [pending.offset for pending in receiver.start(now_ms, concurrency)]


def test_deliveries_start_in_order_up_to_the_limit_of_requests() -> None:
    receiver = reading(6)
    assert started(receiver) == [0, 1, 2, 3]
    assert started(receiver) == []
    receiver.completed(attempt(1, Outcome.DELIVERED), 0)
    assert started(receiver) == [4]


def test_deliveries_of_other_steps_are_passed_over() -> None:
    receiver = Receiver(STEP, ENDPOINT, 0)
    receiver.read(delivery(0, "other"), 0)
    assert (receiver.cursor, started(receiver)) == (1, [])


def test_a_delivery_that_waits_for_its_retry_does_not_hold_up_the_next() -> None:
    receiver = reading(2)
    assert started(receiver, concurrency=1) == [0]
    receiver.completed(attempt(0, Outcome.RETRY, next_at=5_000), 0)
    assert started(receiver, concurrency=1) == [1]
    receiver.completed(attempt(1, Outcome.DELIVERED), 0)
    assert started(receiver, 4_999) == []
    assert started(receiver, 5_000) == [0]
    assert receiver.pending[0].attempts == 1


def test_an_endpoint_that_keeps_failing_gets_one_request_at_a_time() -> None:
    receiver = reading(20)
    for offset in range(UNHEALTHY):
        assert offset in started(receiver, concurrency=1)
        receiver.completed(attempt(offset, Outcome.RETRY, next_at=10_000), 0)
    assert started(receiver, concurrency=4) == [UNHEALTHY]
    receiver.completed(attempt(UNHEALTHY, Outcome.DELIVERED), 0)
    assert len(started(receiver, concurrency=4)) == 4


def test_an_endpoint_that_asks_for_a_pause_gets_nothing_until_then() -> None:
    receiver = reading(3)
    assert started(receiver, concurrency=1) == [0]
    receiver.completed(attempt(0, Outcome.RETRY, next_at=60_000), 60_000)
    assert started(receiver, 59_999) == []
    assert receiver.next_due_ms() == 60_000
    assert started(receiver, 60_000) == [1, 2, 0]


def test_410_disables_an_endpoint_until_it_is_enabled_and_loses_nothing() -> None:
    receiver = reading(3)
    assert started(receiver, concurrency=1) == [0]
    receiver.completed(attempt(0, Outcome.DISABLED), 0)
    assert (started(receiver, 10**12), receiver.wanted, receiver.busy(0)) == ([], 0, False)
    receiver.apply(attempt(-1, Outcome.ENABLE))
    assert sorted(started(receiver, 10**12)) == [0, 1, 2]


def test_a_failed_delivery_is_sent_again_only_on_request_and_from_its_first_attempt() -> None:
    receiver = reading(1)
    started(receiver)
    receiver.completed(attempt(0, Outcome.FAILED, number=10), 0)
    assert started(receiver, 10**12) == []
    receiver.apply(attempt(0, Outcome.REDRIVE, at=7))
    assert [(each.offset, each.attempts, each.body) for each in receiver.start(7, 4)] == [(0, 0, None)]


def test_a_delivery_that_is_being_sent_or_was_not_read_is_not_sent_twice_on_request() -> None:
    receiver = reading(1)
    started(receiver)
    receiver.apply(attempt(0, Outcome.REDRIVE))
    receiver.apply(attempt(5, Outcome.REDRIVE))
    assert (started(receiver), receiver.ahead) == ([], {})


def test_memory_is_bounded() -> None:
    receiver = reading(READ_AHEAD)
    assert receiver.wanted == 0
    for offset in range(MOST_PENDING):
        receiver.cursor = offset + 1
        receiver.apply(attempt(offset, Outcome.RETRY, next_at=1))
    assert receiver.wanted == 0


@pytest.mark.parametrize("seed", range(40))
def test_a_restart_at_any_moment_has_the_same_deliveries_left(seed: int) -> None:
    """Given a checkpoint of any earlier moment and the attempts after it, nothing is lost or resurrected."""
    dice = random.Random(seed)
    receiver, history = Receiver(STEP, ENDPOINT, 0), []
    checkpoint = (0, receiver.to_state())
    end, now = 40, 0
    for _ in range(dice.randrange(80)):
        now += 10
        for _ in range(dice.randrange(4)):
            if receiver.cursor < end:
                receiver.read(delivery(receiver.cursor, dice.choice([STEP, STEP, STEP])), now)
        for pending in receiver.start(now, 3):
            if dice.random() < 0.15:
                continue  # It is being sent when the process dies.
            outcome = dice.choice([Outcome.DELIVERED, Outcome.DELIVERED, Outcome.RETRY, Outcome.FAILED])
            next_at = now + dice.randrange(50) if outcome is Outcome.RETRY else None
            made = attempt(pending.offset, outcome, now, pending.attempts + 1, next_at)
            history.append(made)
            receiver.completed(made, 0)
        if history and dice.random() < 0.1:
            asked = attempt(dice.choice(history).delivery, Outcome.REDRIVE, now)
            history.append(asked)
            receiver.apply(asked)
        if dice.random() < 0.1:
            checkpoint = (len(history), receiver.to_state())
    after, state = checkpoint
    restored = Receiver.of_state(STEP, ENDPOINT, state)
    for each in history[after:]:
        restored.apply(each)
    while restored.cursor < end:
        restored.read(delivery(restored.cursor), now)
    while receiver.cursor < end:
        receiver.read(delivery(receiver.cursor), now)
    assert set(restored.pending) == set(receiver.pending)
    assert {key: each.attempts for key, each in restored.pending.items()} == {
        key: each.attempts for key, each in receiver.pending.items()
    }
