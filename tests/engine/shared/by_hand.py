"""A shared query whose batches run in the process of the test, when the test says so; only Spark is not there."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kernels.in_process import LocalContext, LocalRdd
from potok import StreamsBuilder
from potok.engine.shared.shared_planner import SharedPlanner
from potok.engine.shared.shared_query import SharedQuery
from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.settings import Settings

FIRST = "orders"


class UnitedContext(LocalContext):
    """What a shared query asks of a SparkContext. `dies_with` are queries whose tasks end their worker."""

    master = "local[2]"

    def __init__(self) -> None:
        self.dies_with: set[str] = set()
        self.jobs: list[set[str]] = []

    def getConf(self) -> dict[str, str]:
        return {}

    def parallelize(self, items: Any, count: int) -> Any:
        rows = list(items)
        if rows and isinstance(rows[0], list):
            self._note({job._query for group in rows for _, job in group})
        return super().parallelize(rows, count)

    def union(self, rdds: list[LocalRdd]) -> LocalRdd:
        return LocalRdd([partition for rdd in rdds for partition in rdd._partitions])

    def _note(self, queries: set[str]) -> None:
        self.jobs.append(queries)
        if queries & self.dies_with:
            raise RuntimeError("Python worker exited unexpectedly (crashed)")


class ByHand(SharedQuery):
    """Plans and runs one batch for each `step`."""

    def __init__(self, directory: Path, name: str = "shared", *, broker: Broker | None = None, **settings: Any) -> None:
        self.context = UnitedContext()
        spark: Any = SimpleNamespace(sparkContext=self.context)
        self.broker: Any = broker or EmbeddedBroker.shared(directory)
        chosen = Settings(broker=self.broker.url, shards=2, **settings)
        super().__init__(self.broker, chosen, name, spark=spark)
        self.planner = SharedPlanner(self.broker, self.name, chosen.idle_after_ms, chosen.max_batch_records)
        self._write_roll()
        self._before = self.planner.next()
        offsets = self._loop.checkpoint / "offsets"
        self._number = max((int(path.name) for path in offsets.glob("*")), default=-1) + 1

    @property
    def is_active(self) -> bool:
        return not self._closed

    def wait(self, timeout: float | None = None) -> bool:
        """There is no loop whose end could be waited for."""
        return not self.is_active

    def plan(self) -> bool:
        """Write the next batch down, as Spark does before it runs it; whether there is one."""
        found = self.planner.next()
        if found == self._before:
            return False
        self._before = found
        path = self._loop.checkpoint / "offsets" / str(self._number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("v1\n{}\n" + json.dumps(found.to_json()))
        return True

    def run(self) -> None:
        """Run the batch that was written down last."""
        nothing: Any = None
        self._loop._on_batch(nothing, self._number)
        self._number += 1

    def step(self) -> bool:
        planned = self.plan()
        if planned:
            self.run()
        return planned

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
        return self.members()[name].batch


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
