"""Whether a process lives, and whether it is ready: checks by the parts of the process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from potok.errors import PotokError


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a process is not well: one word for machines, what it is about, and a sentence."""

    reason: str
    subject: str
    detail: str


Check = Callable[[], Iterable[Problem]]


@dataclass(slots=True)
class Health:
    """The checks of a process. `live` finds what only a restart fixes, `ready` what keeps it from serving."""

    live: list[Check] = field(default_factory=list)
    ready: list[Check] = field(default_factory=list)

    def is_live(self) -> list[Problem]:
        """Return the problems that only a restart fixes."""
        return _all(self.live)

    def is_ready(self) -> list[Problem]:
        """Return what keeps the process from serving; whatever does not live is not ready either."""
        return _all([*self.live, *self.ready])


def _all(checks: Iterable[Check]) -> list[Problem]:
    found: list[Problem] = []
    for check in checks:
        try:
            found += check()
        except PotokError as error:
            found.append(Problem("unknown", "", error.message))
    return found
