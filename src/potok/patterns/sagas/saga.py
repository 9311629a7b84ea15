"""Sagas as classes with handlers: own state, own timers, and messages that the handlers send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from potok.duration import Duration, to_ms
from potok.errors import Location, TopologyError

F = TypeVar("F", bound=Callable[..., None])

ON_MARK, TIMER_MARK = "__potok_on__", "__potok_on_timer__"


class Taken(NamedTuple):
    """What `@potok.on` was given."""

    event: type
    start: bool
    at: Location | None


class Actions(NamedTuple):
    """What a handler can do, bound to its instance."""

    key: str
    at: int
    state: str
    send: Callable[[Any], None]
    emit: Callable[[Any], None]
    set_timer: Callable[[str, int], None]
    clear_timer: Callable[[str], None]
    end: Callable[[str, str | None], None]


class Saga:
    """A saga whose handlers decide what follows. Annotated attributes with defaults are the state of an instance.

    >>> @potok.saga("review", by="order_id", sends=[AskForReview])
    ... class Review(potok.Saga):
    ...     reminders: int = 0
    ...
    ...     @potok.on(OrderDelivered, start=True)
    ...     def delivered(self, event: OrderDelivered) -> None:
    ...         self.send(AskForReview(event.order_id))
    ...         self.set_timer("reminder", "3 days")
    ...
    ...     @potok.on(ReviewWritten)
    ...     def written(self, event: ReviewWritten) -> None:
    ...         self.complete()

    A handler whose call raises has no effect: its event becomes a dead letter, and if a timer called it, the
    instance is stuck until an operator says `retry` or `skip`.
    """

    _actions: Actions

    @property
    def key(self) -> str:
        """The key of this instance."""
        return self._actions.key

    @property
    def now_ms(self) -> int:
        """The time of the event, or the time that the timer was set for, in milliseconds."""
        return self._actions.at

    @property
    def status(self) -> str:
        """The state of this instance: `running`, `aborting`, `stuck`, `completed` or `aborted`."""
        return self._actions.state

    def send(self, command: Any) -> None:
        """Send a command, an instance of a class in `sends=` of `@potok.saga`."""
        self._actions.send(command)

    def emit(self, event: Any) -> None:
        """Emit an event, an instance of a class in `emits=` of `@potok.saga`."""
        self._actions.emit(event)

    def set_timer(self, name: str, after: Duration) -> None:
        """Call the handler of `@potok.on_timer(name)` after a while, in place of an earlier timer of that name."""
        self._actions.set_timer(name, to_ms(after))

    def clear_timer(self, name: str) -> None:
        """Remove a timer."""
        self._actions.clear_timer(name)

    def complete(self) -> None:
        """End this instance as `completed`; its timers are removed."""
        self._actions.end("completed", None)

    def compensate(self, reason: str) -> None:
        """Say that this instance is `aborting`: from here on its handlers undo what was done."""
        self._actions.end("aborting", reason)

    def abort(self, reason: str) -> None:
        """End this instance as `aborted`; its timers are removed."""
        self._actions.end("aborted", reason)

    def on_abort(self) -> None:
        """Handle `potok sagas abort`, before the instance ends: override this to send compensations."""


def on(event: type, *, start: bool = False) -> Callable[[F], F]:
    """Declare the handler of an event in a class of `potok.Saga`.

    Args:
        event: The class of the event.
        start: Whether the event starts an instance.
    """
    at = Location.of_caller()
    if not isinstance(event, type):
        raise TopologyError(f"{event!r} is not an event class", hint="write @potok.on(OrderDelivered)", at=at)

    def mark(handler: F) -> F:
        taken = getattr(handler, ON_MARK, ())
        setattr(handler, ON_MARK, (*taken, Taken(event, start, at)))
        return handler

    return mark


def on_timer(name: str) -> Callable[[F], F]:
    """Declare the handler of a timer in a class of `potok.Saga`."""
    at = Location.of_caller()
    if not isinstance(name, str) or not name:
        raise TopologyError("a timer needs a name", hint='write @potok.on_timer("reminder")', at=at)

    def mark(handler: F) -> F:
        setattr(handler, TIMER_MARK, (name, at))
        return handler

    return mark
