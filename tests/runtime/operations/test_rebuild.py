"""Rebuild tables next to the served ones and swap them. Batches run in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from potok import StreamsBuilder
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.records.position import Position
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.operations import rebuild as module
from potok.runtime.operations.rebuild import RebuildProgress, rebuild
from potok.runtime.operations.shadow import catch_up, shadow_of
from potok.runtime.queries.prepare import prepare
from potok.runtime.queries.query import Query
from potok.settings import Settings
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.position_wait import wait_for_position
from potok.snapshots.tables import NoSuchQuery, Tables
from potok.topology.graph import Topology


def program(times: int = 1) -> Topology:
    builder = StreamsBuilder("sums")
    builder.stream("numbers", value=int).group_by_key().aggregate(0, lambda v, agg: agg + v * times, name="sum")
    return builder.build()


class Sums:
    """A query that adds numbers, which runs until it is stopped."""

    def __init__(self, directory: Path) -> None:
        self.broker = EmbeddedBroker.shared(directory)
        self.settings = Settings(broker=f"file:{directory}", shards=1)
        self.broker.create_topic("numbers", 1)
        self.live: Query | None = None

    def send(self, *numbers: int) -> Position:
        results = self.broker.append("numbers", [LogRecord(b"k", b"%d" % n) for n in numbers], 0)
        return Position.after(("numbers", one.partition, one.first_offset + one.count) for one in results)

    def start(self, times: int = 1) -> None:
        prepared = prepare(program(times), self.broker, self.settings)
        self.live = Query(prepared, InProcessExecutor(), self.settings).start()

    def stop(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def read_up_to(self, position: Position) -> None:
        wait_for_position(self.broker, "sums", position, 30)

    @property
    def sum(self) -> int | None:
        return Tables(self.broker, "sums")["sum"].get("k")

    def rebuild(
        self, times: int, report: Callable[[RebuildProgress], None], asked: threading.Event | None = None
    ) -> str | None:
        asked = asked or threading.Event()
        return rebuild(program(times), self.broker, self.settings, lambda _: InProcessExecutor(), report, asked)


@pytest.fixture
def sums(tmp_path: Path) -> Iterator[Sums]:
    found = Sums(tmp_path)
    yield found
    found.stop()
    found.broker.close()


def test_new_tables_follow_a_running_query_and_replace_its_tables_once_it_has_stopped(sums: Sums) -> None:
    sums.start()
    sums.read_up_to(sums.send(1, 2, 3))
    phases: list[str] = []

    def report(found: RebuildProgress) -> None:
        if found.phase == "waiting" and "waiting" not in phases:
            assert sums.sum == 6, "the old tables are served"
            sums.read_up_to(sums.send(4))
            sums.stop()
        phases.append(found.phase)

    assert sums.rebuild(10, report) == "sums"
    assert sums.sum == 100
    assert {"waiting", "swapping"} <= set(phases)
    assert phases[-1] == "swapping"
    assert read_entry(sums.broker, shadow_of(program()).name) is None
    sums.start(10)
    sums.read_up_to(sums.send(5))
    assert sums.sum == 150


def test_a_stopped_query_is_swapped_at_once_and_unread_records_stay_unread(sums: Sums) -> None:
    sums.start()
    sums.read_up_to(sums.send(1, 2))
    sums.stop()
    after = sums.send(3)
    seen: list[RebuildProgress] = []
    assert sums.rebuild(10, seen.append) == "sums"
    assert sums.sum == 30
    assert (seen[-1].phase, seen[-1].read, seen[-1].total, seen[-1].percent) == ("swapping", 2, 2, 100.0)
    sums.start(10)
    sums.read_up_to(after)
    assert sums.sum == 60


def test_an_interrupted_rebuild_changes_nothing_and_is_resumed(sums: Sums) -> None:
    sums.start()
    sums.read_up_to(sums.send(1, 2))
    asked = threading.Event()
    asked.set()
    assert sums.rebuild(10, lambda _: None, asked) is None
    assert sums.sum == 3
    sums.stop()
    assert sums.rebuild(10, lambda _: None) == "sums"
    assert sums.sum == 30


def test_a_query_that_starts_again_before_the_swap_is_followed_again(
    sums: Sums, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums.start()
    sums.read_up_to(sums.send(1))
    sums.stop()
    tries: list[int] = []

    def late(*arguments: object) -> Query:
        tries.append(len(tries))
        if len(tries) == 1:
            sums.start()
        return catch_up(*arguments)  # type: ignore[arg-type]

    def report(found: RebuildProgress) -> None:
        if found.phase == "waiting" and tries and sums.live is not None:
            sums.read_up_to(sums.send(2))
            sums.stop()

    monkeypatch.setattr(module, "catch_up", late)
    assert sums.rebuild(10, report) == "sums"
    assert (len(tries), sums.sum) == (2, 30)


def test_a_query_that_never_ran_cannot_be_rebuilt(sums: Sums) -> None:
    with pytest.raises(NoSuchQuery):
        sums.rebuild(1, lambda _: None)
