"""`orders_program` with its batches in one process, and no Spark. Log, ledger, cells and sinks are as they always are,
and so is every step that makes something durable; whoever is killed there is back in two seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable

from potok import StreamsBuilder
from potok.log.open import open_broker
from potok.runtime.batches.batch import BatchRunner
from potok.runtime.batches.executor import Executor
from potok.runtime.batches.group_batch import run_batch
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.planning.planner import Planner
from potok.runtime.planning.watermark import windowed_steps
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from tests.kill import orders_program


def main(
    url: str,
    batch: int,
    prefix: str,
    build: Callable[[str], StreamsBuilder] = orders_program.build,
    executor: Executor | None = None,
    state: str = "",
) -> None:
    settings = Settings(broker=url, shards=2, state=state)
    broker = open_broker(url, settings)
    prepared = prepare(build(prefix), broker, settings)
    plan, ledger = prepared.plan, prepared.ledger
    parts = plan, ledger, prepared.directory, prepared.metrics
    runner = BatchRunner(executor or InProcessExecutor(), broker, *parts, prepared.state)
    # Several tasks for each batch, with a shuffle between them.
    runner.small_batch = -1
    topics = plan.topology.source_topics
    ends, steps = broker.end_offsets_of(topics), windowed_steps(plan.topology)
    bounds = settings.idle_after_ms, batch, ends
    planner = Planner(broker, ledger, topics, steps, *bounds, aligned=plan.aligned)
    while (following := planner.next()) != ledger.entry.offsets:
        run_batch(runner, following)
    ledger.end_epoch({})
    runner.close()
    prepared.release()
    broker.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
