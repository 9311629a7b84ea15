"""How large a batch may be."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.runtime.planning.pace import FIRST, LEAST, SHRINKAGE, WARM_UP, WARM_UP_MS, Pace

TARGET_MS = 1_000
SETTLED = 40
"""So many batches are for finding the size."""
REACHABLE = 0.4
"""Up to this share of the target as fixed cost, batches keep to twice the target. From 0.6 on no constant size does so
and gives records 70 % of the time. Between the two shares, batches become longer: their durations are noisy, so the
estimate of the fixed cost has an error, and throughput matters more. Of 50,000 random cases two missed a bound, by less
than 4 %: noise of 30 % and a start every five batches leave few measurements after a change of costs."""


class Backlog:
    """A query that has more records waiting than it can ever read; a batch takes `fixed_ms + per_record_ms * n`."""

    def __init__(self, fixed_ms: float, per_record_ms: float, most: int = 1_000_000, first: int = FIRST) -> None:
        self.fixed_ms, self.per_record_ms, self.most, self._first = fixed_ms, per_record_ms, most, first
        self._data: bytes | None = None
        self.sizes: list[int] = []
        self.times: list[float] = []
        self.best_times: list[float] = []
        self.start()

    def start(self) -> None:
        self.pace = Pace(TARGET_MS, self.most, self._first)
        self.pace.resume(self._data)
        self._since_start = 0

    def run(self, batches: int, noise: Random | None = None, scatter: float = 0.0, warm_up_ms: float = 0.0) -> None:
        for _ in range(batches):
            records = self.pace.next
            time = self.fixed_ms + self.per_record_ms * records
            factor = 1 + noise.uniform(-scatter, scatter) if noise is not None else 1.0
            time *= factor
            late = warm_up_ms / 4**self._since_start if self._since_start < WARM_UP else 0.0
            self._since_start += 1
            self.pace.learn(records, int(time + late))
            self._data = self.pace.to_bytes()
            self.sizes.append(records)
            self.times.append(time)
            self.best_times.append((self.fixed_ms + self.per_record_ms * self.most) * factor)

    def forget(self, kept: int = 0) -> None:
        """Forget the batches so far, except the last ones."""
        for measured in (self.sizes, self.times, self.best_times):
            del measured[: len(measured) - kept]

    @property
    def rate(self) -> float:
        """Records a millisecond, once the size is found."""
        return sum(self.sizes[SETTLED:]) / sum(self.times[SETTLED:])

    @property
    def best_rate(self) -> float:
        """That of the best constant size with the same noise: records are never cheaper than in the largest batch."""
        return self.most * len(self.best_times[SETTLED:]) / sum(self.best_times[SETTLED:])


@given(
    fixed_ms=st.floats(1, 10_000),
    microseconds=st.floats(0.1, 50_000),
    most=st.sampled_from([20_000, 1_000_000]),
    first=st.sampled_from([1_000, 20_000, 250_000]),
    scatter=st.sampled_from([0.0, 0.1, 0.2, 0.3]),
    restart_every=st.sampled_from([5, 10, 50, 1_000]),
    warm_up_ms=st.sampled_from([0, 3_000, 30_000]),
    changes=st.tuples(st.floats(0.05, 20), st.floats(0.05, 20)),
    seed=st.integers(0, 2**32),
)
def test_a_backlog_is_read_nearly_as_fast_as_by_the_best_constant_size_and_batches_keep_to_the_target(
    fixed_ms: float,
    microseconds: float,
    most: int,
    first: int,
    scatter: float,
    restart_every: int,
    warm_up_ms: int,
    changes: tuple[float, float],
    seed: int,
) -> None:
    backlog, noise = Backlog(fixed_ms, microseconds / 1_000, most, first), Random(seed)
    for fixed_change, record_change in ((1.0, 1.0), changes):
        backlog.fixed_ms = min(max(fixed_ms * fixed_change, 1), 10_000)
        backlog.per_record_ms = min(max(microseconds * record_change, 0.1), 50_000) / 1_000
        backlog.forget()
        while len(backlog.sizes) < SETTLED + 80:
            backlog.start()
            backlog.run(min(restart_every, SETTLED + 80 - len(backlog.sizes)), noise, scatter, warm_up_ms)
        assert backlog.rate >= 0.7 * backlog.best_rate
        if backlog.fixed_ms <= REACHABLE * TARGET_MS:
            assert median(backlog.times[SETTLED:]) <= 2 * TARGET_MS


@pytest.mark.parametrize("fixed_ms", [50, 950, 1_100, 2_000, 9_000])
def test_restarts_do_not_make_batches_smaller(fixed_ms: float) -> None:
    backlog = Backlog(fixed_ms, 0.02)
    rates = []
    for _ in range(20):
        backlog.start()
        before = len(backlog.sizes)
        backlog.run(6, warm_up_ms=8_000)
        rates.append(sum(backlog.sizes[before:]) / sum(backlog.times[before:]))
    assert min(rates[5:]) >= 0.7 * backlog.best_rate


def test_remembered_batches_of_the_same_size_cause_no_division_by_zero() -> None:
    pace = Pace(TARGET_MS, 20_000)
    for records in (20_000, 14_000, 16_000, 20_000, 20_000, 20_000):
        assert LEAST <= pace.learn(records, 1_500) <= 20_000


def test_the_first_batches_after_a_start_say_nothing() -> None:
    pace = Pace(TARGET_MS, 1_000_000, 50_000)
    assert [pace.learn(50_000, WARM_UP_MS) for _ in range(WARM_UP)] == [50_000] * WARM_UP


def test_what_no_warm_up_explains_makes_the_next_batch_smaller() -> None:
    pace = Pace(TARGET_MS, 1_000_000, 20_000)
    assert pace.learn(20_000, 200_000) == 20_000 // SHRINKAGE


def test_a_slow_start_does_not_overrule_what_was_learnt_before() -> None:
    backlog = Backlog(10, 0.02)
    backlog.run(60)
    learnt = backlog.pace.limit
    backlog.start()
    backlog.pace.learn(learnt, 100_000)
    assert backlog.pace.limit == learnt


def test_a_single_slow_batch_changes_little() -> None:
    backlog = Backlog(10, 0.02)
    backlog.run(60)
    usual = backlog.pace.limit
    backlog.pace.learn(usual, 30_000)
    assert backlog.pace.limit >= usual / 2
    backlog.run(20)
    assert 0.7 * usual <= backlog.pace.limit <= 1.4 * usual


@pytest.mark.parametrize(("fixed_ms", "per_record_ms"), [(10, 1.0), (900, 0.02), (10, 0.001)])
def test_changed_costs_are_learned_again(fixed_ms: float, per_record_ms: float) -> None:
    backlog = Backlog(100, 0.02)
    backlog.run(100)
    backlog.fixed_ms, backlog.per_record_ms = fixed_ms, per_record_ms
    backlog.run(100)
    backlog.forget(SETTLED + 40)
    assert backlog.rate >= 0.7 * backlog.best_rate
    assert fixed_ms > REACHABLE * TARGET_MS or median(backlog.times[SETTLED:]) <= 2 * TARGET_MS


def test_a_limit_that_was_far_too_small_is_left_behind() -> None:
    """As an earlier version wrote it, which knew no more than the limit."""
    pace = Pace(TARGET_MS, 1_000_000)
    pace.resume(b"1000")
    assert pace.next == 1_000
    for _ in range(40):
        pace.learn(pace.next, int(1_100 + 0.02 * pace.next))
    assert pace.limit > 100_000


def test_small_batches_of_a_query_that_keeps_up_do_not_make_large_ones_smaller() -> None:
    pace = Pace(TARGET_MS, 1_000_000)
    for records in (100, 120, 300, 90, 250, 110, 180) * 10:
        pace.learn(records, 60 + records // 10)
    assert pace.limit >= FIRST


def test_batches_without_records_say_nothing() -> None:
    pace = Pace(TARGET_MS, 1_000_000, 5_000)
    assert [pace.learn(0, 9_999) for _ in range(5)] == [5_000] * 5


@given(st.integers(1, 10**6), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6))))
def test_it_stays_within_its_bounds(most: int, batches: list[tuple[int, int]]) -> None:
    pace = Pace(TARGET_MS, most)
    for records, batch_ms in batches:
        assert LEAST <= pace.learn(records, batch_ms) <= most
    again = Pace(TARGET_MS, most)
    again.resume(pace.to_bytes())
    assert again.limit == pace.limit
    assert min(pace.next, pace.limit) <= again.next <= pace.limit, "a trial batch does not survive a restart"
