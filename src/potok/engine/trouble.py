"""What the planner of a query waits for, told to the driver by a file: they are two processes."""

from __future__ import annotations

import contextlib
from pathlib import Path

from potok.errors import PotokError, QueryError


class PlannerWaits(QueryError):
    """The planner waits for somebody who does not answer."""

    passing = True


def _place(planner: Path) -> Path:
    return planner.with_name("planner-trouble")


def write_trouble(planner: Path, error: PotokError | None) -> None:
    """Say what is waited for; None where that is over. If even that cannot be said, the wait goes on all the same."""
    with contextlib.suppress(OSError):
        if error is None:
            _place(planner).unlink(missing_ok=True)
        else:
            _place(planner).write_text(error.message)


def read_trouble(planner: Path) -> PotokError | None:
    try:
        return PlannerWaits(_place(planner).read_text())
    except OSError:
        return None
