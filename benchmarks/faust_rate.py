"""One program in Faust's style on one Kafka topic: how many records a second in Faust and in Potok.

A rate leaves out the start on both sides: it is taken from the moment at which Faust is through with its first
`WARM_UP` records, or Potok with its first batch, to the last record. Faust's is what its own monitor says that its
agents are done with, Potok's is what is committed. After each run of Potok its tables and its output are compared with
the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import kafka
from benchmarks.bench import Bench, Row, console
from benchmarks.faust_truth import USERS, batches, check
from benchmarks.faust_worker import FAUST, POTOK, SPREAD, Mark, place, working
from benchmarks.measure import wait_for_quiet
from potok.log.open import open_broker

FAUST_RECORDS, WARM_UP = 60_000, 5_000
"""Faust needs about a minute for so many."""


def one(bench: Bench) -> Row:
    return _row(bench, "agents as they are (one task)", POTOK, 20.0)


def spread(bench: Bench) -> Row:
    return _row(bench, "agents spread by key", SPREAD, 40.0)


def _row(bench: Bench, name: str, side: str, bar: float) -> Row:
    with filled(bench, bench.records) as url:
        return bench.at_least(
            f"Kafka, {name}, against a worker of Faust; counts exact",
            lambda: potok_rate(bench, side, url),
            lambda: faust_rate(bench, url),
            bar,
        )


@contextmanager
def filled(bench: Bench, records: int) -> Iterator[str]:
    """A Kafka with a topic of orders, each under the key of its user: Faust has its tables keyed as the topic is."""
    with kafka.server(bench, 0) as url:
        fill(url, 0, records)
        yield url


def fill(url: str, first: int, records: int) -> None:
    """Orders number `first` to `records`."""
    console.print(f"[dim]writing {records - first:,} orders of {USERS:,} users to Kafka[/]")
    broker = open_broker(url)
    for batch in batches(first, records):
        broker.append("orders", batch)


def faust_rate(bench: Bench, url: str) -> float:
    wait_for_quiet()
    where = place(bench, FAUST, url)
    console.print("[dim]running Faust[/]")
    marks: list[Mark] = []
    with working(where) as worker:
        for mark in worker.marks():
            if mark[1] >= WARM_UP:
                marks.append(mark)
            if mark[1] >= min(FAUST_RECORDS, bench.records):
                break
    return _rate(marks)


def potok_rate(bench: Bench, side: str, url: str) -> float:
    wait_for_quiet()
    where = place(bench, side, url)
    console.print(f"[dim]running {side}[/]")
    with working(where) as worker:
        marks = list(worker.marks())
    check(where, bench.records)
    return _rate(marks)


def _rate(marks: list[Mark]) -> float:
    (began, first), (ended, last) = marks[0], marks[-1]
    if last == first:
        raise RuntimeError("too few records to tell a rate: give more with --records")
    return (last - first) / (ended - began)
