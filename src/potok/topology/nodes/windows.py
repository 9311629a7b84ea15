"""How time is cut into windows."""

from __future__ import annotations

from dataclasses import dataclass

from potok.duration import Duration, days, show_ms, to_ms
from potok.errors import TopologyError

DEFAULT_RETENTION = days(7)


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows of one size that neither overlap nor leave gaps; they start at multiples of the size since 1970.

    A record is late for its window once the stream time of its partition has reached `end + grace`. A closed window
    stays readable until the clock passes `end + retention`.
    """

    size_ms: int
    grace_ms: int = 0
    retention_ms: int = 0

    def grace(self, grace: Duration) -> Tumbling:
        """The same windows, that still accept records which come up to `grace` after the end."""
        return tumbling_ms(self.size_ms, to_ms(grace), max(self.retention_ms, to_ms(grace)))

    def __str__(self) -> str:
        return f"tumbling {show_ms(self.size_ms)}, grace {show_ms(self.grace_ms)}"


def tumbling(size: Duration, *, grace: Duration = 0, retention: Duration = DEFAULT_RETENTION) -> Tumbling:
    """Windows of one size, one after the other.

    >>> tumbling("1 hour", grace="5 minutes").size_ms
    3600000
    """
    return tumbling_ms(to_ms(size), to_ms(grace), to_ms(retention))


def tumbling_ms(size_ms: int, grace_ms: int, retention_ms: int) -> Tumbling:
    if size_ms <= 0:
        raise TopologyError("a window needs a size of at least one millisecond", hint="write tumbling(hours(1))")
    if grace_ms < 0 or retention_ms < 0:
        raise TopologyError("grace and retention cannot be negative", hint="write grace=minutes(5), or leave it out")
    return Tumbling(size_ms, grace_ms, max(retention_ms, grace_ms))
