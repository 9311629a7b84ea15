"""What a shared query refuses.

QueryError
├── AlreadyMember      a topology whose name is taken
├── NotMember          a name that nobody has
├── NotRunning         a member that failed, or rests
├── NotFailed          nothing to try again
└── NotCaughtUp        records that are still to be read
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from potok.errors import QueryError


class AlreadyMember(QueryError):
    """A topology whose name is taken."""

    def __init__(self, name: str, state: str) -> None:
        super().__init__(
            f'query "{name}" takes part already ({state})',
            hint="remove it first, or retry it if it failed",
        )


class NotMember(QueryError):
    """A name that nobody has."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f'no query "{name}" takes part', hint=f"there are: {', '.join(known) or 'none'}")


class NotRunning(QueryError):
    """A member that failed, or rests."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f'query "{name}" does not run: {why}', hint="resume it, or retry it if it failed")


class NotFailed(QueryError):
    """Nothing to try again."""

    def __init__(self, name: str, state: str) -> None:
        super().__init__(f'query "{name}" has not failed: it is {state}', hint="retry is for queries that failed")


class NotCaughtUp(QueryError):
    """Records that are still to be read."""

    def __init__(self, behind: Mapping[str, int], when: str) -> None:
        left = ", ".join(f'"{name}" {records:,}' for name, records in sorted(behind.items()))
        super().__init__(f"records are left to be read {when}: {left}", hint="wait longer, or look at members()")
