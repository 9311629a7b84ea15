"""Errors of a group of queries.

QueryError
├── DuplicateQuery      the name of another query of the group
├── NotInGroup          a name that no query of the group has
├── NotRunning         a query that failed or is paused
├── NotFailed          a query that has not failed
├── NotCaughtUp        records remain to be read
└── StopTimedOut        a batch that did not end in time after a stop request
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from potok.duration import show_ms
from potok.errors import QueryError


class StopTimedOut(QueryError):
    """A batch that did not end in time after Ctrl-C or SIGTERM; the process ends in the middle of it."""

    exit_code = 4

    def __init__(self, within_ms: int) -> None:
        super().__init__(
            f"the batch did not end within {show_ms(within_ms)} after the request to stop",
            hint="nothing is lost: it is repeated at the next start; stop_timeout sets how long to wait",
        )


class DuplicateQuery(QueryError):
    """A query with the same name is in the group."""

    def __init__(self, name: str, state: str) -> None:
        super().__init__(
            f'query "{name}" is already in the group ({state})',
            hint="remove it first, or retry it if it failed",
        )


class NotInGroup(QueryError):
    """A name that no query of the group has."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f'no query "{name}" in the group', hint=f"queries of the group: {', '.join(known) or 'none'}")


class NotRunning(QueryError):
    """A query that failed or is paused."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f'query "{name}" is not running: {why}', hint="resume it, or retry it if it failed")


class NotFailed(QueryError):
    """A query that cannot be retried because it has not failed."""

    def __init__(self, name: str, state: str) -> None:
        super().__init__(f'query "{name}" has not failed: it is {state}', hint="only a failed query can be retried")


class NotCaughtUp(QueryError):
    """Records remain to be read."""

    def __init__(self, behind: Mapping[str, int], when: str) -> None:
        left = ", ".join(f'"{name}" {records:,}' for name, records in sorted(behind.items()))
        super().__init__(f"unread records remain {when}: {left}", hint="wait longer, or look at statuses()")
