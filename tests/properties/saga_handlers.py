"""Random sagas of handlers, and events that they can take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import potok
from tests.oracle.saga_handlers import Rules
from tests.oracle.sagas import Happening
from tests.properties.sagas import COMMANDS, ENDS, EVENTS

HEARD = {"start": "started", "a.ok": "heard_a", "b.ok": "heard_b"}
TIMERS = {"one": "after_one", "two": "after_two"}
DO, EMIT = COMMANDS["Do-a"], ENDS["stuck"]

Doing = tuple[Any, ...]
"""What a handler does: the name of it, and its arguments."""


def perform(saga: Any, doings: list[Doing]) -> None:
    """What the user of these sagas has written."""
    for what, *given in doings:
        if what == "send":
            saga.send(DO(saga.key))
        elif what == "emit":
            saga.emit(EMIT(saga.key))
        elif what == "count":
            saga.count += 1
        elif what == "remember":
            saga.seen.append([saga.now_ms, saga.status])
        elif what == "raise":
            if saga.count % 2 == given[0]:
                raise ValueError("an odd count")
        elif what == "set":
            saga.set_timer(given[0], f"{given[1]} ms")
        elif what == "clear":
            saga.clear_timer(given[0])
        elif what == "complete":
            saga.complete()
        else:
            getattr(saga, what)("why")


def method_of(name: str, doings: list[Doing], *, takes_event: bool) -> Callable[..., None]:
    def with_event(self: Any, event: Any) -> None:
        assert event.id == self.key
        perform(self, doings)

    def alone(self: Any) -> None:
        perform(self, doings)

    method = with_event if takes_event else alone
    method.__name__ = method.__qualname__ = name
    return method


def rules_of(doings: dict[str, list[Doing]], missing: str = "dead_letter", keep_ms: int | None = None) -> Rules:
    heard = set(HEARD.values())
    return Rules(
        "handled",
        HEARD,
        TIMERS,
        frozenset(["start"]),
        {name: method_of(name, given, takes_event=name in heard) for name, given in doings.items()},
        {"count": 0, "seen": []},
        missing,
        keep_ms,
        lambda message: "stuck" if type(message) is EMIT else type(message).__name__,
    )


@st.composite
def rules(draw: st.DrawFn) -> Rules:
    after = st.integers(5, 20)
    timer = st.sampled_from(list(TIMERS))
    doing = st.one_of(
        st.sampled_from([("send",), ("send",), ("emit",), ("count",), ("count",), ("remember",)]),
        st.tuples(st.just("set"), timer, after),
        st.tuples(st.just("set"), timer, after),
        st.tuples(st.just("clear"), timer),
        st.sampled_from([("raise", 0), ("raise", 1), ("complete",), ("compensate",), ("abort",)]),
    )
    several = st.lists(doing, max_size=4)
    names = [*HEARD.values(), *TIMERS.values(), "on_abort"]
    made = {name: draw(several) for name in names}
    # Most instances live for a while.
    made["started"] = [("set", draw(timer), draw(after)), *(one for one in made["started"] if one[0] != "complete")]
    return rules_of(
        made, draw(st.sampled_from(["dead_letter", "ignore", "start"])), draw(st.sampled_from([None, 0, 20]))
    )


@st.composite
def heard(draw: st.DrawFn) -> list[Happening]:
    found: list[Happening] = []
    at = 1_000
    likely = ["start", "start", "a.ok", "a.ok", "b.ok", "b.ok", "retry", "retry", "skip", "abort"]
    for number in range(draw(st.integers(1, 14))):
        at += draw(st.sampled_from([1, 1, 2, 5, 9]))
        what = "start" if number == 0 else draw(st.sampled_from(likely))
        id_ = f"id-{number}" if draw(st.integers(0, 5)) else "id-0"
        found.append(Happening(at, draw(st.sampled_from(["k1", "k2"])), what, id_))
    return found


def handlers_of(given: Rules) -> Any:
    """Return the rules as a user would declare them, by event time."""
    methods = dict(given.methods)
    made: dict[str, Any] = {"__annotations__": {"count": int, "seen": list}, "count": 0, "seen": []}
    for event, name in given.events.items():
        made[name] = potok.on(EVENTS[event], start=event in given.starts)(methods.pop(name))
    for timer, name in given.timers.items():
        made[name] = potok.on_timer(timer)(methods.pop(name))
    keep = None if given.keep_ms is None else f"{given.keep_ms} ms"
    declare = potok.saga(
        given.name,
        by="id",
        clock="event",
        missing=given.missing,
        keep=keep,
        sends=[DO],
        emits=[EMIT],  # type: ignore[arg-type]
    )
    return declare(type("Handled", (potok.Saga,), made | methods))
