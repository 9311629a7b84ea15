"""Report what Spark is doing in this process."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext


def spark_activity() -> dict[str, Any] | None:
    """Return the master, the number of task slots and the running stages; None without a running Spark."""
    context = SparkContext._active_spark_context
    if context is None:
        return None
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return {
        "application": context.applicationId,
        "master": context.master,
        "slots": context.defaultParallelism,
        "ui": context.uiWebUrl,
        "stages": [
            {
                "stage": stage.stageId,
                "name": stage.name,
                "tasks": stage.numTasks,
                "running": stage.numActiveTasks,
                "completed": stage.numCompletedTasks,
                "failed": stage.numFailedTasks,
            }
            for stage in stages
            if stage is not None
        ],
    }
