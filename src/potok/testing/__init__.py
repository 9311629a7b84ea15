"""A kit to test topologies with: real Spark batches, step by step."""

from potok.testing.driver import TestDriver

__all__ = ["TestDriver"]
