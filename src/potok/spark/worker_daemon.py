"""The process that forks the workers of Spark's tasks: pyspark's own, but with everything imported, and silent when the
JVM hangs up.

A worker that waits for its next task while Spark stops would print a traceback about one time in eight. And after each
task pyspark looks for garbage: what was imported is kept out of that, which would take longer than a small batch.
"""

from __future__ import annotations

import gc

from pyspark import daemon

import potok.runtime.batches.task  # noqa: F401 - for its imports: a forked worker is ready at once
from potok.spark.shutdown import hush_daemon
from potok.spark.worker_logs import write_logs_as_told

if __name__ == "__main__":
    hush_daemon(daemon)
    write_logs_as_told()
    gc.collect()
    gc.freeze()
    daemon.manager()
