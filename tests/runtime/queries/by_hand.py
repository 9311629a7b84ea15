"""A group of queries whose batches run in the process of the test, when the test says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from potok import StreamsBuilder
from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.runtime.batches.executor import Outcome, Part
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings
from potok.snapshots.snapshot import Snapshot, read_snapshots
from potok.snapshots.table_view import TableView
from potok.snapshots.tables import Tables, committed
from potok.state.offsets import Offsets

FIRST = "orders"

T = TypeVar("T")
Rows = Callable[[], dict[str, int]]


class NotingExecutor(InProcessExecutor):
    """Notes the queries of each job. `dies_with` are queries whose tasks end their worker."""

    def __init__(self) -> None:
        self.dies_with: set[str] = set()
        self.jobs: list[set[str]] = []

    def run(self, parts: Sequence[Part]) -> list[Outcome]:
        queries = {part.spec.query for part in parts}
        self.jobs += [queries] if queries else []
        if queries & self.dies_with:
            raise RuntimeError("Python worker exited unexpectedly (crashed)")
        return super().run(parts)


class ByHand(QueryGroup):
    """Plans and runs one batch for each `step`."""

    def __init__(self, directory: Path, name: str = "shared", *, broker: Broker | None = None, **settings: Any) -> None:
        self.executor = NotingExecutor()
        self.broker: Any = broker or EmbeddedBroker.shared(directory)
        super().__init__(self.broker, Settings(broker=self.broker.url, shards=2, **settings), self.executor, name)

    @property
    def is_active(self) -> bool:
        return not self._closed

    def wait(self, timeout: float | None = None) -> bool:
        """There is no loop whose end could be waited for."""
        return not self.is_active

    def plan(self) -> dict[str, Offsets]:
        """Take note of the next batch, as a process does that is killed before it runs it."""
        planned = self._planner.plan(self._queries.values())
        for name, end in planned.ends.items():
            self._queries[name].runner.begin(end)
        return planned.ends

    def kill(self) -> None:
        """Let go of the locks, as the end of a process does, and close nothing."""
        for member in self._queries.values():
            member.prepared.release()
        assert self._owner is not None
        self._owner.release()

    def settle(self) -> int:
        """Batches until there is nothing to do; how many there were."""
        count = 0
        while self.step():
            count += 1
            assert count < 1_000, "the planner never comes to an end"
        return count

    def counts(self, name: str) -> dict[Any, Any]:
        return self.tables(name)["counts"].all()

    def batch_of(self, name: str) -> int:
        return self.statuses()[name].batch


def read_counts(broker: EmbeddedBroker, names: Sequence[str], work: Callable[[Mapping[str, Rows]], T]) -> T:
    """Run `work` on the counts of several queries in snapshots of one instant; each is read when it is called."""
    looks = [partial(committed, broker, name) for name in names]
    views = [Tables(broker, name)["counts"] for name in names]

    def on_snapshots(snapshots: list[Snapshot]) -> T:
        found = zip(names, views, snapshots, strict=True)
        return work({name: partial(_rows, view, snapshot) for name, view, snapshot in found})

    return read_snapshots(looks, on_snapshots)


def _rows(view: TableView, snapshot: Snapshot) -> dict[str, int]:
    return dict(view.rows_of(snapshot))


def counting(name: str, topic: str = FIRST) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    builder.stream(topic, value="user string, amount bigint").group_by("user").count(name="counts")
    return builder


def send(broker: EmbeddedBroker, count: int, topic: str = FIRST, *, users: int = 5, amount: int = 1) -> None:
    if not broker.has_topic(topic):
        broker.create_topic(topic, 2)
    broker.append(
        topic,
        [
            LogRecord(b"k%d" % n, json.dumps({"user": f"u{n % users}", "amount": amount}).encode(), 1_000 + n)
            for n in range(count)
        ],
    )
