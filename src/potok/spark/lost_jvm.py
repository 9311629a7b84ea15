"""Whether Spark's JVM is still there: a process whose own was killed can start no other."""

from __future__ import annotations

from potok.errors import QueryError
from potok.runtime.batches.failure_cause import JVM_GONE


class JvmGone(QueryError):
    """The JVM of this process was killed. Another one needs another process."""

    def __init__(self) -> None:
        super().__init__(
            JVM_GONE,
            hint="start it again, and all queries go on where they stopped; driver_memory in potok.toml gives it more",
        )


def jvm_is_gone() -> bool:
    """Whether the JVM that this process started has ended."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None
