"""Scripts whose batches run in the process of the test."""

from __future__ import annotations

from operators.core.in_process import InProcess
from potok.testing import SqlDriver


class InProcessSql(SqlDriver):
    """A `SqlDriver` without Spark."""

    drive = InProcess
