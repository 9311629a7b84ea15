"""Detect that Spark's JVM has ended: the process that started it cannot start another one."""

from __future__ import annotations

from potok.errors import QueryError
from potok.runtime.batches.failure_cause import JVM_GONE


class JvmGone(QueryError):
    """The JVM of this process was killed. A new one requires a new process."""

    def __init__(self) -> None:
        super().__init__(
            JVM_GONE,
            hint="start it again to resume all queries; driver_memory in potok.toml gives it more memory",
        )


def jvm_is_gone() -> bool:
    """Whether the JVM that this process started has ended."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None
