"""Accounts that are killed while they decide: deposits, and withdrawals that must not overdraw."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

import potok
from potok import StreamsBuilder
from potok.log.broker import Broker
from potok.patterns.aggregates.messages import Result, command_record, read_result
from potok.records.log_record import LogRecord
from tests.kill import without_spark

ACCOUNTS = 100
REPEATED = 7
"""Each so many-th command is sent twice."""


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
    parts: int


@dataclass
class Withdraw:
    amount: int


@potok.aggregate("accounts", events="account-events")
class Account:
    balance: int = 0

    @potok.command
    def deposit(self, command: Deposit) -> Iterator[Deposited]:
        for _ in range(command.parts):
            yield Deposited(command.amount)

    @potok.command
    def withdraw(self, command: Withdraw) -> Withdrawn:
        if command.amount > self.balance:
            raise potok.RejectedError(f"the balance is {self.balance}")
        return Withdrawn(command.amount)

    @potok.applies
    def deposited(self, event: Deposited) -> None:
        self.balance += event.amount

    @potok.applies
    def withdrawn(self, event: Withdrawn) -> None:
        self.balance -= event.amount


def build(prefix: str) -> StreamsBuilder:
    builder = StreamsBuilder("accounts-query")
    builder.aggregate(Account, keep_results="1 day")
    return builder


def records(count: int) -> list[LogRecord]:
    """Return `count` commands, those that are sent twice included."""
    found: list[LogRecord] = []
    number = 0
    while len(found) < count:
        key, id_ = f"account-{number * 31 % ACCOUNTS}", f"command-{number}"
        if number % 3:
            one = command_record(key, "Deposit", {"amount": number % 50, "parts": 1 + number % 2}, command_id=id_)
        else:
            one = command_record(key, "Withdraw", {"amount": number % 90}, command_id=id_)
        found += [one] * (2 if number % REPEATED == 0 else 1)
        number += 1
    return found[:count]


def check(broker: Broker, commands: list[LogRecord]) -> None:
    """Compare events, results and states with what plain Python says of the commands."""
    balances, versions = Counter[str](), Counter[str]()
    expected: dict[str, list[tuple[str, bool, int]]] = defaultdict(list)
    events: dict[str, list[tuple[str, int]]] = defaultdict(list)
    first: dict[bytes, tuple[str, bool, int]] = {}
    for record in commands:
        key, id_, given = (record.key or b"").decode(), dict(record.headers)["command-id"] or b"", _data(record)
        if id_ not in first:
            amounts = [given["amount"]] * given["parts"] if "parts" in given else [-given["amount"]]
            accepted = "parts" in given or given["amount"] <= balances[key]
            if accepted:
                balances[key] += sum(amounts)
                versions[key] += len(amounts)
                events[key] += [("deposited" if "parts" in given else "withdrawn", abs(one)) for one in amounts]
            first[id_] = (id_.decode(), accepted, versions[key])
        expected[key].append(first[id_])
    results: dict[str, list[Result]] = defaultdict(list)
    for record in _read(broker, "accounts-results"):
        results[(record.key or b"").decode()].append(read_result(record.value or b""))
    for key, wanted in expected.items():
        assert [(one.command_id, one.status == "accepted", one.version) for one in results[key]] == wanted, key
    found: dict[str, list[dict[str, object]]] = defaultdict(list)
    for record in _read(broker, "account-events"):
        found[(record.key or b"").decode()].append(orjson.loads(record.value or b""))
    for key, mine in events.items():
        assert [one["sequence"] for one in found[key]] == [f"{number + 1:010d}" for number in range(len(mine))], key
        assert [(one["type"], one["data"]) for one in found[key]] == [(t, {"amount": a}) for t, a in mine], key
    ids = [one["id"] for mine in found.values() for one in mine]
    assert len(set(ids)) == len(ids)
    table = potok.open_tables(broker.url, "accounts-query")["accounts"].all()
    assert {key: (row["version"], row["state"]["balance"]) for key, row in table.items()} == {
        key: (versions[key], balances[key]) for key in versions if versions[key]
    }


def _data(record: LogRecord) -> dict[str, int]:
    found: dict[str, int] = orjson.loads(record.value or b"")["data"]
    return found


def _read(broker: Broker, topic: str) -> Iterator[LogRecord]:
    for partition, end in broker.end_offsets_of([topic])[topic].items():
        for batch in broker.read(topic, partition, 0, end):
            for row in batch.to_pylist():
                yield LogRecord(row["key"], row["value"])


if __name__ == "__main__":
    without_spark.main(sys.argv[1], int(sys.argv[2]), "", build)
