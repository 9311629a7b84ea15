"""A kit to test topologies and scripts with: real batches, step by step, in this process or on Spark."""

from typing import TYPE_CHECKING, Any

from potok.testing.driver import TestDriver

if TYPE_CHECKING:
    from potok.testing.sql_driver import SqlDriver

__all__ = ["SqlDriver", "TestDriver"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """What SQL needs is imported by those who use it."""
    if name == "SqlDriver":
        from potok.testing.sql_driver import SqlDriver

        return SqlDriver
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
