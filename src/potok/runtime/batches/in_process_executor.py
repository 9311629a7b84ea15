"""The executor of the test driver: runs the tasks of a batch one after the other in this process."""

from __future__ import annotations

from collections.abc import Sequence

from potok.runtime.batches.executor import Outcome, Part
from potok.runtime.batches.task import Item

PARALLELISM = 3


class InProcessExecutor:
    """Run each level of a batch over the shuffle blocks of the previous level, as Spark does."""

    master = "local"
    parallelism = PARALLELISM
    spark = None

    def check(self) -> None:
        """Do nothing: it ends with this process."""

    def run(self, parts: Sequence[Part]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for part in parts:
            outcome = Outcome()
            for _, data in _run_tasks(part):
                outcome.add(data)
            outcomes.append(outcome)
        return outcomes


def _run_tasks(part: Part) -> list[Item]:
    job = part.job()
    if part.one_task:
        return list(job.all_levels(()))
    readers = max(len(part.spec.tasks), 1)
    items = [item for index in range(readers) for item in job.read(index, ())]
    for level in range(1, part.depth + 1):
        blocks: list[list[Item]] = [[] for _ in range(part.spec.shard_tasks)]
        for task, data in items:
            blocks[task % len(blocks)].append((task, data))
        items = [item for index, block in enumerate(blocks) for item in job.run_level(level, index, block)]
    return items
