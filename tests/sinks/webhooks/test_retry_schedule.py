from __future__ import annotations

from potok.sinks.webhooks.retry_schedule import DEFAULT_PAUSES_MS, HOUR, RetrySchedule


def test_ten_attempts_take_a_little_more_than_three_days() -> None:
    now = 0
    for attempt in range(1, 10):
        following = RetrySchedule().next_at("msg_1", attempt, now)
        assert following is not None
        now = following
    assert 75 * HOUR < now < 92 * HOUR
    assert RetrySchedule().next_at("msg_1", 10, now) is None


def test_jitter_spreads_deliveries_over_a_fifth_of_the_pause_and_is_the_same_after_a_restart() -> None:
    schedule = RetrySchedule((1_000,))
    times = [schedule.next_at(f"msg_{number}", 1, 0) for number in range(200)]
    assert times == [schedule.next_at(f"msg_{number}", 1, 0) for number in range(200)]
    assert len(set(times)) > 100
    assert all(time is not None and 1_000 <= time <= 1_200 for time in times)


def test_a_receiver_can_ask_for_a_longer_pause_but_not_for_a_shorter_one() -> None:
    schedule = RetrySchedule((10_000,))
    assert schedule.next_at("msg_1", 1, 0, retry_after_s=60) == 60_000
    assert (schedule.next_at("msg_1", 1, 0, retry_after_s=1) or 0) >= 10_000


def test_the_pauses_grow() -> None:
    assert list(DEFAULT_PAUSES_MS) == sorted(DEFAULT_PAUSES_MS)
