"""The process that forks the workers of Spark's tasks: pyspark's own, with everything imported in advance, and silent
when the JVM closes its connections.

A worker that waits for its next task while Spark stops would print a traceback about one time in eight. pyspark
collects garbage after each task: imported modules are frozen, because traversing them would take longer than a small
batch.
"""

from __future__ import annotations

import gc

from pyspark import daemon

import potok.runtime.batches.task  # noqa: F401 - for its imports: a forked worker is ready at once
from potok.spark.shutdown import hush_daemon
from potok.spark.worker_logs import write_task_logs

if __name__ == "__main__":
    hush_daemon(daemon)
    write_task_logs()
    gc.collect()
    gc.freeze()
    daemon.manager()
