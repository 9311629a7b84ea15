"""Test topologies and scripts: real batches, step by step, in this process or on Spark."""

from potok.testing.driver import SqlDriver, TestDriver

__all__ = ["SqlDriver", "TestDriver"]


def __dir__() -> list[str]:
    return sorted(__all__)
