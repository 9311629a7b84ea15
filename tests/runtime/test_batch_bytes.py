"""No batch reads more bytes than it may, however large its records are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.operators.core.batch_spec import BatchTooLarge
from potok.operators.core.task_report import Report
from potok.records.log_record import LogRecord
from potok.runtime.batches.batch import BatchRunner
from potok.runtime.batches.group_batch import run_batch
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.planning.pace import Pace
from potok.runtime.planning.planner import Planner
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from potok.snapshots.tables import Tables
from potok.state.entry import metadata_key_of
from potok.state.offsets import Offsets

MOST = 20_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker.shared(tmp_path)
    broker.create_topic("t", 2)
    yield broker
    broker.close()


def run(broker: EmbeddedBroker, small_batch: int = 10_000, batches: int = 200) -> list[Report]:
    """Count all records that are there; the reports of the batches that were committed."""
    builder = StreamsBuilder("q")
    builder.stream("t", value=bytes).group_by_key().count(name="n").to_stream().to("out")
    prepared = prepare(builder, broker, Settings(shards=2))
    parts = prepared.plan, prepared.ledger, prepared.directory, prepared.metrics
    runner = BatchRunner(InProcessExecutor(), broker, *parts, prepared.state, small_batch=small_batch)
    runner.pace = Pace(1_000, 1_000_000, 250_000, MOST)
    runner.pace.resume(broker.get_metadata(metadata_key_of("q", "pace")))
    planner = Planner(broker, prepared.ledger, ["t"], {}, 1 << 40, 1 << 40, max_bytes=MOST)
    found = []
    for _ in range(batches):
        end = planner.next(runner.pace.next)
        if end == runner.ledger.entry.offsets:
            break
        report = run_batch(runner, end)
        if report is not None:
            found.append(report)
    assert planner.next() == runner.ledger.entry.offsets
    runner.close()
    prepared.release()
    return found


def send(broker: EmbeddedBroker, *sizes: int) -> None:
    records = [LogRecord(b"k%d" % (n % 3), b"x" * size, n) for n, size in enumerate(sizes)]
    for partition in (0, 1):
        broker.append("t", records[partition::2], partition)


SIZES: dict[str, list[int]] = {
    "large": [1_000] * 300,
    "small then large": [10] * 500 + [2_000] * 100,
    "large then small": [2_000] * 60 + [10] * 500,
    "one of many": [10] * 400 + [15_000] + [10] * 400,
    "larger than a batch may be": [50_000] * 6,
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
@pytest.mark.parametrize("small_batch", [-1, 10_000], ids=["several tasks", "one task"])
def test_no_batch_reads_more_than_it_may_and_nothing_is_lost(
    broker: EmbeddedBroker, sizes: list[int], small_batch: int
) -> None:
    send(broker, *sizes)
    reports = run(broker, small_batch)
    single = 2 * (max(sizes) + 2)
    assert max(report.bytes_in for report in reports) <= max(MOST, single)
    assert sum(report.records_in["t"] for report in reports) == len(sizes)
    assert sum(Tables(broker, "q")["n"].all().values()) == len(sizes)


def test_the_size_of_records_is_remembered_by_the_next_start(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(broker, *[1_000] * 100)
    run(broker)
    void: list[BatchTooLarge] = []
    shrink: Callable[..., None] = BatchRunner.shrink

    def noted(self: BatchRunner, error: BatchTooLarge, spec: Any) -> None:
        void.append(error)
        shrink(self, error, spec)

    monkeypatch.setattr(BatchRunner, "shrink", noted)
    send(broker, *[1_000] * 100)
    run(broker)
    assert void == []


def test_the_bound_is_part_of_what_is_planned_so_that_a_replay_has_the_same() -> None:
    planned = Offsets({"t": {0: 5}}, max_bytes=MOST)
    assert Offsets.of_json(planned.to_json()).max_bytes == MOST
    assert Offsets.of_json(Offsets({"t": {0: 5}}).to_json()).max_bytes == 0


def test_many_bytes_make_the_next_batch_smaller_at_once_and_few_make_it_larger_by_and_by() -> None:
    pace = Pace(1_000, 1_000_000, 10_000, 1_000_000)
    assert pace.learn(100, 10, 100 * 10_000) == 50
    sizes = [pace.learn(50, 10, 50 * 10) for _ in range(20)]
    assert max(sizes[:3]) < 500
    assert min(sizes[-5:]) >= 5_000
