"""The state of one saga instance: plain data that is stored in a cell and returned to readers unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

RUNNING, ABORTING, STUCK, COMPLETED, ABORTED = "running", "aborting", "stuck", "completed", "aborted"
STATES = (RUNNING, ABORTING, STUCK, COMPLETED, ABORTED)
ENDED = (COMPLETED, ABORTED)

LONGEST_HISTORY = 200
"""The entries of a history; older ones are removed."""

FORGET = "forget"
"""The timer that removes an instance some time after its end."""

Instance = dict[str, Any]
"""`saga`, `key`, `version`, `state`, `group`, `data`, `steps` by name, `done` in the order of completion, `undo` (what
is left to be compensated, last first), `timers` by name, `history`, `reason`, `correlation`, whether its first event
was seen (`began`), and when it started and changed."""


class Port(Protocol):
    """What a saga does to the world: all of it commits with the record or the timer that led to it."""

    at: int
    """The time of the event, or the one that the timer was set for."""
    event: str
    """The type of the event; empty for a timer."""
    cause: str
    """The id of the event; empty for a timer."""
    correlation: str

    def send(self, message: str, data: Mapping[str, Any], key: str) -> None:
        """Send a command under an idempotency key."""

    def emit(self, message: str, data: Mapping[str, Any], key: str) -> None: ...

    def schedule(self, name: str, after_ms: int) -> int:
        """Set a timer and return its time."""

    def cancel(self, name: str) -> None: ...

    def report(self, text: str) -> None:
        """Write the record or the timer to the dead letters, and keep what it led to."""

    def mark(self) -> int:
        """Return what `revert` needs to forget all that is done from here on."""

    def revert(self, mark: int) -> None: ...


def new_instance(saga: str, version: int, key: str, data: Mapping[str, Any], port: Port) -> Instance:
    """Return an instance that has just started."""
    return {
        "saga": saga,
        "key": key,
        "version": version,
        "state": RUNNING,
        "group": -1,
        "reason": None,
        "correlation": port.correlation,
        "began": True,
        "started_at": port.at,
        "changed_at": port.at,
        "data": dict(data),
        "steps": {},
        "done": [],
        "undo": [],
        "timers": {},
        "history": [],
    }


def note(instance: Instance, port: Port, what: str, step: str = "", **more: Any) -> None:
    """Add an entry to the history."""
    entry: dict[str, Any] = {"at": port.at, "what": what}
    if step:
        entry["step"] = step
    if port.cause:
        entry |= {"event": port.event, "event_id": port.cause}
    history = instance["history"]
    history.append(entry | more)
    del history[:-LONGEST_HISTORY]
    instance["changed_at"] = max(instance["changed_at"], port.at)


def is_duplicate(instance: Instance, port: Port) -> bool:
    """Whether an event has been taken before, by its id."""
    return bool(port.cause) and any(
        entry.get("event_id") == port.cause and entry.get("event") == port.event for entry in instance["history"]
    )


def add_data(instance: Instance, data: Mapping[str, Any]) -> None:
    """Add the fields of an event; a null replaces no value."""
    known = instance["data"]
    known.update({name: value for name, value in data.items() if value is not None or name not in known})


def set_timer(instance: Instance, port: Port, name: str, after_ms: int) -> None:
    """Set a timer, in place of an earlier one with its name."""
    clear_timer(instance, port, name)
    instance["timers"][name] = port.schedule(name, after_ms)


def clear_timer(instance: Instance, port: Port, name: str) -> None:
    if instance["timers"].pop(name, None) is not None:
        port.cancel(name)


def clear_timers(instance: Instance, port: Port) -> None:
    for name in list(instance["timers"]):
        clear_timer(instance, port, name)


def summary(instance: Instance) -> dict[str, Any]:
    """Return what a list of instances shows."""
    timers = instance["timers"]
    steps = [name for name, one in instance["steps"].items() if one["state"] in ACTIVE]
    return {
        "version": instance["version"],
        "steps": steps,
        "reason": instance["reason"],
        "started_at": instance["started_at"],
        "changed_at": instance["changed_at"],
        "next_timer": min(timers.values(), default=None),
    }


ACTIVE = ("waiting", "retrying", "undoing", "undo_retrying", "stuck", "undo_stuck")
"""States of a step that something is expected of."""
