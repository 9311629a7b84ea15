"""Commands of event-sourced aggregates: from a command to its result at 20 a second, and how many a second one process
decides.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import potok
from benchmarks.bench import LIMIT_S, Bench, Row, console
from benchmarks.measure import Rates, rates_between, run_measured, wait_for_quiet
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.patterns.aggregates.messages import command_record

AGGREGATES = 100_000
COMMANDS = 500_000
BATCH = 100_000
PER_SECOND, WARM_UP, SECONDS = 20, 15, 60
P50_MS, P99_MS = 100.0, 250.0
RATE = 20_000.0
PARTITIONS = 4
LOOK_S = 0.002


@potok.event("account.deposited")
@dataclass
class Deposited:
    account_id: str
    amount: float


@dataclass
class Deposit:
    account_id: str
    amount: float


@potok.aggregate("accounts", events="account-events")
class Account:
    balance: float = 0.0
    deposits: int = 0

    @potok.command
    def deposit(self, command: Deposit) -> Iterator[Deposited]:
        if command.amount <= 0:
            raise potok.RejectedError("a deposit is positive")
        yield Deposited(command.account_id, command.amount)

    @potok.applies
    def deposited(self, event: Deposited) -> None:
        self.balance += event.amount
        self.deposits += 1


def program() -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("bank")
    builder.aggregate(Account, partitions=PARTITIONS)
    return builder


def median(bench: Bench) -> Row:
    return _latency(bench, "p50", 0.50, P50_MS)


def slowest(bench: Bench) -> Row:
    return _latency(bench, "p99", 0.99, P99_MS)


def rate(bench: Bench) -> Row:
    """The other side is the bar: commands a second."""
    tries = [_rate(bench, number) for number in range(bench.repeat)]
    what = f"commands over {AGGREGATES:,} aggregates"
    shares = [one / RATE for one in tries]
    return Row(what, statistics.median(tries), RATE, "commands/s", 1.0, smaller_is_better=False, tries=shares)


_measured: list[float] = []


def _latency(bench: Bench, name: str, share: float, bar_ms: float) -> Row:
    if not _measured:
        _measured.extend(_times(bench))
    found = _measured[min(int(len(_measured) * share), len(_measured) - 1)]
    what = f"command to result at {PER_SECOND}/s on the embedded log, {name}"
    return Row(what, found, bar_ms, "ms", 1.0, smaller_is_better=True, tries=[found / bar_ms])


def _times(bench: Bench) -> list[float]:
    wait_for_quiet()
    console.print("[dim]measuring the time from commands to results[/]")
    url = f"file:{bench.directory / 'commands-log'}"
    broker = open_broker(url)
    for topic in ("accounts-commands", "account-events", "accounts-results"):
        broker.create_topic(topic, PARTITIONS)
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.aggregates", url])
    try:
        return sorted(_play(broker))
    finally:
        process.terminate()
        process.wait(60)
        broker.close()


def _play(broker: Broker) -> list[float]:
    sent: dict[str, float] = {}
    found: dict[str, float] = {}
    done = threading.Event()

    def receive() -> None:
        seen = dict.fromkeys(range(PARTITIONS), 0)
        while not done.wait(LOOK_S):
            for partition, end in broker.end_offsets("accounts-results").items():
                for batch in broker.read("accounts-results", partition, seen[partition], end):
                    at = time.perf_counter()
                    for key in batch.column("key").to_pylist():
                        found.setdefault(key.decode(), at)
                seen[partition] = end

    def send(account: str) -> None:
        record = command_record(account, "Deposit", {"account_id": account, "amount": 5.0}, command_id=account)
        sent[account] = time.perf_counter()
        broker.append("accounts-commands", [record])

    receiver = threading.Thread(target=receive)
    receiver.start()
    send("first")
    deadline = time.monotonic() + 120
    while not found and time.monotonic() < deadline:
        time.sleep(0.1)
    began = time.perf_counter()
    for number in range((WARM_UP + SECONDS) * PER_SECOND):
        time.sleep(max(0.0, began + number / PER_SECOND - time.perf_counter()))
        send(f"account-{number}")
    deadline = time.monotonic() + 30
    while len(found) < len(sent) and time.monotonic() < deadline:
        time.sleep(0.1)
    done.set()
    receiver.join()
    wanted = [f"account-{number}" for number in range(WARM_UP * PER_SECOND, (WARM_UP + SECONDS) * PER_SECOND)]
    return [(found[account] - sent[account]) * 1000 for account in wanted]


def _rate(bench: Bench, number: int) -> float:
    wait_for_quiet()
    directory, out = bench.directory / f"commands-{number}", bench.directory / f"commands-{number}.json"
    console.print(f"[dim]sending {COMMANDS:,} commands[/]")
    _write_commands(f"file:{directory}")
    arguments = ["benchmarks.aggregates", f"file:{directory}", "--out", str(out)]
    run_measured([sys.executable, "-m", *arguments], LIMIT_S, memory=False)
    return Rates(**json.loads(out.read_text())).rows_per_second


def _write_commands(url: str) -> None:
    broker = open_broker(url)
    for topic in ("accounts-commands", "account-events", "accounts-results"):
        broker.create_topic(topic, PARTITIONS)
    for start in range(0, COMMANDS, BATCH):
        records = []
        for number in range(start, start + BATCH):
            account = f"account-{number * 7919 % AGGREGATES}"
            data = {"account_id": account, "amount": 5.0}
            records.append(command_record(account, "Deposit", data, command_id=f"command-{number}"))
        broker.append("accounts-commands", records)
    broker.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.out is None:
        potok.run(program(), broker=options.url)
        return
    query = potok.start(
        program(), broker=options.url, until_end=True, max_batch_records=BATCH, target_batch_ms=3_600_000
    )
    ends: list[tuple[float, int]] = []

    def count(_: object) -> None:
        ends.append((time.monotonic(), sum(query.offsets.topics["accounts-commands"].values())))

    query.group.on_batch(count)
    query.wait()
    options.out.write_text(json.dumps(vars(rates_between(ends))))


if __name__ == "__main__":
    main()
