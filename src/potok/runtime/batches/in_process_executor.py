"""The executor of the test driver: runs the tasks of a batch one after the other in this process."""

from __future__ import annotations

from collections.abc import Sequence

from potok.runtime.batches.executor import Outcome, Part
from potok.runtime.batches.task import Item
from potok.runtime.batches.task_output import InProcessOutput, without_output

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
            outcome, tasks = Outcome(), _run_tasks(part)
            for items in tasks:
                for _, data in without_output(items) if part.spec.keeps_output else items:
                    outcome.add(data)
            if outcome.report.kept:
                outcome.output = InProcessOutput(tasks, outcome.report)
            outcomes.append(outcome)
        return outcomes


def _run_tasks(part: Part) -> list[list[Item]]:
    """Return the results of the tasks of the last level."""
    job = part.job()
    if part.one_task:
        return [list(job.all_levels(()))]
    readers = max(len(part.spec.tasks), 1)
    tasks = [list(job.read(index, ())) for index in range(readers)]
    for level in range(1, part.depth + 1):
        blocks: list[list[Item]] = [[] for _ in range(part.spec.shard_tasks)]
        for task, data in (item for items in tasks for item in items):
            blocks[task % len(blocks)].append((task, data))
        tasks = [list(job.run_level(level, index, block)) for index, block in enumerate(blocks)]
    return tasks
