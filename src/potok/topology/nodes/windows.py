"""Window definitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from potok.duration import Duration, days, show_ms, to_ms
from potok.errors import Location, TopologyError
from potok.expressions.function import Function

DEFAULT_RETENTION = days(7)

W = TypeVar("W", bound="Window")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The base of all kinds of windows. Results of a closed window stay readable until the watermark passes `end +
    retention`.
    """

    grace_ms: int = 0
    retention_ms: int = 0

    def grace(self: W, grace: Duration) -> W:
        """Return the same windows, accepting records up to `grace` after the end."""
        return checked(replace(self, grace_ms=to_ms(grace), retention_ms=max(self.retention_ms, to_ms(grace))))

    @property
    def size_ms(self) -> int:
        """From start to end; 0 if windows differ in length."""
        raise NotImplementedError

    @property
    def layout(self) -> str:
        """Return what decides which cells exist: state of other windows is not compatible."""
        raise NotImplementedError

    def closes_ms(self, start_ms: Any, end_ms: Any) -> Any:
        """Return the watermark at which no record can reach a window any more; works on arrays too."""
        return end_ms + self.grace_ms

    @property
    def delay_ms(self) -> int:
        """Return how far the watermark may be past the timestamp of a result while its window is open, at most.

        A result has the largest timestamp of its records. In a session that is the end; in other windows it may
        be the start.
        """
        return int(self.closes_ms(0, self.size_ms)) - 1


@dataclass(frozen=True, slots=True)
class Tumbling(Window):
    """Windows of one size that neither overlap nor leave gaps; they start at multiples of the size since 1970.

    A record is late for its window once the stream time of its partition has reached `end + grace`.
    """

    length_ms: int

    @property
    def size_ms(self) -> int:
        return self.length_ms

    @property
    def advance_ms(self) -> int:
        return self.length_ms

    @property
    def layout(self) -> str:
        return f"tumbling {self.length_ms} ms"

    def __str__(self) -> str:
        return f"tumbling {show_ms(self.length_ms)}, grace {show_ms(self.grace_ms)}"


@dataclass(frozen=True, slots=True)
class Hopping(Window):
    """Windows of one size that start every `advance`, so that a record belongs to several."""

    length_ms: int
    advance_ms: int

    @property
    def size_ms(self) -> int:
        return self.length_ms

    @property
    def layout(self) -> str:
        return f"hopping {self.length_ms} ms by {self.advance_ms} ms"

    def __str__(self) -> str:
        sizes = f"{show_ms(self.length_ms)} by {show_ms(self.advance_ms)}"
        return f"hopping {sizes}, grace {show_ms(self.grace_ms)}"


@dataclass(frozen=True, slots=True)
class Sliding(Window):
    """A window ends at each record and another starts right after it; both ends are inclusive, `difference`
    apart.
    """

    difference_ms: int

    @property
    def size_ms(self) -> int:
        return self.difference_ms

    def closes_ms(self, start_ms: Any, end_ms: Any) -> Any:
        return end_ms + 1 + self.grace_ms

    @property
    def layout(self) -> str:
        return f"sliding {self.difference_ms} ms"

    def __str__(self) -> str:
        return f"sliding {show_ms(self.difference_ms)}, grace {show_ms(self.grace_ms)}"


@dataclass(frozen=True, slots=True)
class Session(Window):
    """Windows that follow the records of a key: from the first to the last of a series of records close to each
    other.

    Both ends are inclusive. Event times alone (for equal ones, positions) decide which records form a session,
    so records that arrive out of order may merge two sessions, or split others differently.

    Args:
        gap_ms: A record more than this after the last one of the session belongs to another session.
        from_first: The session accepts records less than `gap_ms` after its first record, and none later.
        opens: Only a record for which this is true starts a session; records outside a session belong to none.
        closes: A record for which this is true ends its session; records with the same timestamp still belong
        to it.
    """

    gap_ms: int
    from_first: bool = False
    opens: Function | None = None
    closes: Function | None = None

    @property
    def size_ms(self) -> int:
        return 0

    @property
    def plain(self) -> bool:
        """Whether two parts of a session can be merged without reading their records again."""
        return not self.from_first and self.opens is None and self.closes is None

    def closes_ms(self, start_ms: Any, end_ms: Any) -> Any:
        # A record with time t is accepted until the stream time has passed t + gap + grace, and extends a session
        # up to a gap after its last record, or just before a gap after its first.
        reach = start_ms - 1 if self.from_first else end_ms
        return reach + 2 * self.gap_ms + self.grace_ms + 1

    @property
    def layout(self) -> str:
        kind = "from the first" if self.from_first else "from the last"
        bounds = f"{', opened' if self.opens else ''}{', closed' if self.closes else ''}"
        return f"session {self.gap_ms} ms {kind}{bounds}"

    def __str__(self) -> str:
        kind = "session from the first record" if self.from_first else "session"
        return f"{kind}, {show_ms(self.gap_ms)}, grace {show_ms(self.grace_ms)}"


FixedWindow = Tumbling | Hopping
"""Windows that depend on the time of a record alone: their starts are multiples of `advance_ms`."""


def tumbling(size: Duration, *, grace: Duration = 0, retention: Duration = DEFAULT_RETENTION) -> Tumbling:
    """Return windows of one size that neither overlap nor leave gaps.

    >>> tumbling("1 hour", grace="5 minutes").size_ms
    3600000
    """
    return tumbling_ms(to_ms(size), to_ms(grace), to_ms(retention))


def tumbling_ms(size_ms: int, grace_ms: int, retention_ms: int) -> Tumbling:
    return checked(Tumbling(size_ms, grace_ms=grace_ms, retention_ms=retention_ms))


def hopping(
    size: Duration, advance: Duration, *, grace: Duration = 0, retention: Duration = DEFAULT_RETENTION
) -> Hopping:
    """Return windows of one size that start every `advance`.

    >>> hopping("10 minutes", "1 minute").advance_ms
    60000
    """
    times = {"grace_ms": to_ms(grace), "retention_ms": to_ms(retention)}
    return checked(Hopping(to_ms(size), to_ms(advance), **times))


def sliding(difference: Duration, *, grace: Duration = 0, retention: Duration = DEFAULT_RETENTION) -> Sliding:
    """Return windows that slide with the records: all records no more than `difference` apart.

    >>> sliding("30 seconds").difference_ms
    30000
    """
    times = {"grace_ms": to_ms(grace), "retention_ms": to_ms(retention)}
    return checked(Sliding(to_ms(difference), **times))


def session(
    gap: Duration | None = None,
    *,
    timeout: Duration | None = None,
    from_first: bool = False,
    opens: Any = None,
    closes: Any = None,
    grace: Duration = 0,
    retention: Duration = DEFAULT_RETENTION,
) -> Session:
    """Return session windows: they last as long as records arrive without a longer pause.

    >>> session("30 minutes").gap_ms
    1800000
    >>> session(timeout="2 minutes", from_first=True).from_first
    True

    Args:
        gap: How long a pause ends the session.
        timeout: With `from_first`, the length of a session from its first record.
        from_first: Measure from the first record of the session instead of the last.
        opens: A function of the value (or of key and value) that is true for records that may start a session.
        closes: A function of the value (or of key and value) that is true for records that end their session.
        grace: How long after that late records are accepted.
        retention: How long the result stays readable.
    """
    length = _session_length(gap, timeout, from_first=from_first)
    first, last = (None if test is None else Function.of(test, (1, 2)) for test in (opens, closes))
    times = {"grace_ms": to_ms(grace), "retention_ms": to_ms(retention)}
    return checked(Session(to_ms(length), from_first, first, last, **times))


def _session_length(gap: Duration | None, timeout: Duration | None, *, from_first: bool) -> Duration:
    """A gap is measured from the last record, a timeout from the first."""
    at = Location.of_caller()
    hint = "write session(minutes(30)), or session(timeout=minutes(30), from_first=True)"
    if gap is not None and timeout is not None:
        raise TopologyError("a session has a gap or a timeout, not both", hint=hint, at=at)
    if timeout is not None and not from_first:
        raise TopologyError("a timeout is counted from the first record, a gap from the last", hint=hint, at=at)
    length = gap if gap is not None else timeout
    if length is None:
        raise TopologyError("a session needs a gap or a timeout", hint=hint, at=at)
    return length


_EXAMPLES = {
    Tumbling: "hours(1)",
    Hopping: "minutes(10), minutes(1)",
    Sliding: "seconds(30)",
    Session: "minutes(30)",
}


def checked(window: W) -> W:
    """Return the window, if its times are valid, with a retention no shorter than its grace."""
    length_ms = window.gap_ms if isinstance(window, Session) else window.size_ms
    if length_ms <= 0:
        hint = f"write {type(window).__name__.lower()}({_EXAMPLES[type(window)]})"
        raise TopologyError("a window needs a size of at least one millisecond", hint=hint, at=Location.of_caller())
    if window.grace_ms < 0 or window.retention_ms < 0:
        hint = "write grace=minutes(5), or leave it out"
        raise TopologyError("grace and retention cannot be negative", hint=hint, at=Location.of_caller())
    if isinstance(window, Hopping) and not 0 < window.advance_ms <= window.length_ms:
        raise TopologyError(
            f"a hopping window cannot advance by {show_ms(window.advance_ms)}",
            hint="advance by at least a millisecond and at most the size: hopping(minutes(10), minutes(1))",
            at=Location.of_caller(),
        )
    return replace(window, retention_ms=max(window.retention_ms, window.grace_ms))
