"""Aggregates: the same answers, events and states whatever the batches, shards and restarts, and after a rebuild."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

import potok
from potok.patterns.aggregates.messages import command_record, read_result
from potok.records.log_record import LogRecord
from potok.runtime.operations.shadow import shadow_of
from potok.testing import TestDriver
from tests.oracle.event_sourcing import Answer, Book, Placed, Sent, in_order, play, states

KEEP_MS = 40


@potok.event("deposited")
@dataclass
class Deposited:
    amount: int


@potok.event("withdrawn")
@dataclass
class Withdrawn:
    amount: int


@dataclass
class Deposit:
    amount: int


@dataclass
class Withdraw:
    amount: int


@dataclass
class Fail:
    amount: int


@potok.aggregate("accounts", events="account-events")
class Account:
    balance: int = 0

    @potok.command
    def deposit(self, command: Deposit) -> Iterator[Deposited]:
        yield Deposited(command.amount)
        yield Deposited(command.amount)

    @potok.command
    def withdraw(self, command: Withdraw) -> Withdrawn:
        if command.amount > self.balance:
            raise potok.RejectedError("not enough")
        return Withdrawn(command.amount)

    @potok.command
    def fail(self, command: Fail) -> Iterator[Deposited]:
        yield Deposited(command.amount)
        raise ValueError("on purpose")

    @potok.applies
    def deposited(self, event: Deposited) -> None:
        if event.amount < 0:
            raise ValueError("negative")
        self.balance += event.amount

    @potok.applies
    def withdrawn(self, event: Withdrawn) -> None:
        if event.amount < 0:
            raise ValueError("negative")
        self.balance -= event.amount


KEYS, TIMES = st.sampled_from(["a", "b", "c"]), st.integers(0, 100)
COMMANDS = st.builds(
    Sent,
    st.just("command"),
    KEYS,
    TIMES,
    st.sampled_from(["Deposit", "Withdraw", "Withdraw", "Fail", "Unknown"]),
    st.integers(0, 5),
    st.none() | st.sampled_from(["c1", "c2", "c3"]),
    st.sampled_from(["any", "any", "any", "none", "exists", "2", "soon"]),
)
EVENTS = st.builds(Sent, st.just("event"), KEYS, TIMES, st.sampled_from(["deposited", "withdrawn"]), st.integers(-1, 5))
PARTS = st.lists(st.lists(COMMANDS | EVENTS, max_size=8), min_size=1, max_size=3)


def record(sent: Sent) -> LogRecord:
    if sent.kind == "event":
        value = b'{"event_id":"f","event_type":"%s","data":{"amount":%d}}' % (sent.name.encode(), sent.amount)
        return LogRecord(sent.key.encode(), value, sent.at)
    made = command_record(
        sent.key, sent.name, {"amount": sent.amount}, command_id=sent.id, expected_version=sent.expected
    )
    return LogRecord(made.key, made.value, sent.at, made.headers)


def append(driver: TestDriver, part: list[Sent]) -> list[Placed]:
    placed: list[Placed] = []
    for sent in part:
        topic = "account-events" if sent.kind == "event" else "accounts-commands"
        (at,) = driver.broker.append(topic, [record(sent)])
        placed.append(((topic, at.partition), at.first_offset, sent))
    return placed


def own_times(driver: TestDriver) -> dict[tuple[str, int], int]:
    """Return the greatest time of each partition of the events, those of the aggregate included."""
    found: dict[tuple[str, int], int] = {}
    for partition, end in driver.broker.end_offsets("account-events").items():
        for batch in driver.broker.read("account-events", partition, 0, end):
            found["account-events", partition] = max(batch.column("timestamp").to_pylist())
    return found


@given(
    PARTS,
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from([1, 3]),
    st.booleans(),
    st.sampled_from([1, 2]),
)
def test_aggregates_do_not_depend_on_batches_shards_and_restarts(
    parts: list[list[Sent]], batch: int | None, shards: int, spread: bool, partitions: int
) -> None:
    builder = potok.StreamsBuilder("bank")
    builder.aggregate(Account, keep_results=f"{KEEP_MS} ms", partitions=partitions)
    books: dict[str, Book] = {}
    reached: dict[tuple[str, int], int] = {}
    with TestDriver(builder, shards=shards, spread=spread) as driver:
        for part in parts:
            placed = append(driver, part)
            places = {id(sent): f"{topic}-{number}-{offset}" for (topic, number), offset, sent in placed}
            for sent in in_order(placed, reached):
                play(books, sent, places[id(sent)], KEEP_MS)
            driver.run(batch)
            driver.restart()
            reached |= own_times(driver)
        assert driver.table("accounts").all() == states(books)
        answers: dict[str, list[Answer]] = defaultdict(list)
        for one in driver.read("accounts-results"):
            result = read_result(one.raw_value or b"")
            answers[result.aggregate_id].append(Answer(result.command_id, result.status, result.version))
        assert dict(answers) == {key: book.answers for key, book in books.items() if book.answers}
        for key, book in books.items():
            history = driver.aggregate(Account).history(key)
            assert [(one.type, one.event.amount, one.own) for one in history] == book.history
            assert [one.version for one in history] == list(range(1, len(book.history) + 1))
        check_rebuilt(driver, builder, books, batch)


def check_rebuilt(driver: TestDriver, builder: potok.StreamsBuilder, books: dict[str, Book], batch: int | None) -> None:
    """A shadow folds the events again, in the order in which they were folded, and decides nothing."""
    shadow = TestDriver(shadow_of(builder.build()), directory=driver.broker.directory)
    shadow.run(batch)
    rebuilt = shadow.table("accounts").all()
    shadow.leave()
    assert rebuilt == states(books)
    assert driver.read("shadow-accounts-results") == driver.read("shadow-account-events") == []
