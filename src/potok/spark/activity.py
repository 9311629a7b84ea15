"""Report what Spark is doing in this process."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext


def spark_activity() -> dict[str, Any] | None:
    """Return the master, the task slots, the executors and the running stages; None without a running Spark."""
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
        "executors": _executors(context),
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


def _executors(context: SparkContext) -> list[dict[str, Any]]:
    """Return the executors, of which one is the driver: running tasks, and the memory of their block managers."""
    jvm: Any = context._jsc
    return [
        {
            "address": f"{info.host()}:{info.port()}",
            "running": int(info.numRunningTasks()),
            "used_bytes": int(info.usedOnHeapStorageMemory()) + int(info.usedOffHeapStorageMemory()),
            "memory_bytes": int(info.totalOnHeapStorageMemory()) + int(info.totalOffHeapStorageMemory()),
        }
        for info in jvm.sc().statusTracker().getExecutorInfos()
    ]
