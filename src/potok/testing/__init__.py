"""Test topologies and scripts: real batches, step by step, in this process or on Spark."""

from potok.testing.driver import SqlDriver, TestDriver
from potok.testing.given import given

__all__ = ["SqlDriver", "TestDriver", "given"]


def __dir__() -> list[str]:
    return sorted(__all__)
