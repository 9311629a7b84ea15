"""Random sagas of steps, as a user would declare them, and events that they can take."""

from __future__ import annotations

from dataclasses import make_dataclass
from typing import Any

from hypothesis import strategies as st

import potok
from potok.patterns.sagas.control import action_of
from tests.oracle.choreographies import Watched
from tests.oracle.sagas import Happening, Plan, Step

NAMES = ("a", "b", "c", "d")
PARTS = ("ok", "failed", "undone", "undo_failed")
ACTIONS = ("retry", "skip", "abort")


def _event(name: str) -> Any:
    return potok.event(name)(make_dataclass(name.replace(".", "_"), [("id", str)]))


EVENTS = {name: _event(name) for name in ("start", *(f"{step}.{part}" for step in NAMES for part in PARTS))}
ENDS = {name: _event(name) for name in ("completed", "aborted", "stuck")}
COMMANDS = {name: make_dataclass(name, [("id", str)]) for step in NAMES for name in (f"Do-{step}", f"Undo-{step}")}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    sizes = draw(st.lists(st.sampled_from([1, 1, 2]), min_size=1, max_size=3).filter(lambda found: sum(found) <= 4))
    names = iter(NAMES)
    steps: list[Step] = []
    for group, size in enumerate(sizes):
        pivot = size == 1 and draw(st.integers(0, 4)) == 0
        for _ in range(size):
            undo = draw(st.booleans())
            steps.append(
                Step(
                    next(names),
                    group,
                    undo,
                    undo and draw(st.booleans()),
                    draw(st.sampled_from([None, 5, 12])),
                    draw(st.integers(0, 2)),
                    draw(st.sampled_from([0, 3, 8])),
                    pivot,
                )
            )
    return Plan(tuple(steps), draw(st.sampled_from(["dead_letter", "ignore"])), draw(st.sampled_from([None, 0, 20])))


@st.composite
def happenings(draw: st.DrawFn, plan: Plan) -> list[Happening]:
    """Events and actions that a saga of this plan can take; the likely ones more often. Times increase."""
    heard = [f"{step.name}.{part}" for step in plan.steps for part in _parts(step)]
    likely = ["start", *(f"{step.name}.ok" for step in plan.steps), *heard, "abort", "retry", "skip"]
    found: list[Happening] = []
    at = 1_000
    for key in draw(st.lists(st.sampled_from(["k1", "k2"]), max_size=2, unique=True)):
        at += 1
        found.append(Happening(at, key, "start", f"first-{key}"))
    for number in range(draw(st.integers(0, 14))):
        at += draw(st.sampled_from([1, 1, 2, 5, 9]))
        what = draw(st.sampled_from(likely))
        id_ = f"id-{number}" if draw(st.integers(0, 5)) else "id-0"
        found.append(Happening(at, draw(st.sampled_from(["k1", "k2"])), what, id_))
    return found


def _parts(step: Step) -> tuple[str, ...]:
    return PARTS if step.waits else PARTS[:2]


def saga_of(plan: Plan) -> Any:
    """Return the plan as a user would declare it, by event time."""
    made: dict[str, Any] = {}
    for step in plan.steps:
        heard = {part: EVENTS[f"{step.name}.{part}"] for part in _parts(step)}
        undo = {"undo": COMMANDS[f"Undo-{step.name}"]} if step.undo else {}
        timeout = None if step.timeout_ms is None else f"{step.timeout_ms} ms"
        made[step.name] = potok.step(
            send=COMMANDS[f"Do-{step.name}"],
            timeout=timeout,
            retry=potok.retry(step.retries, f"{step.delay_ms} ms"),
            pivot=step.pivot,
            **heard,
            **undo,
        )
    for number in {step.group for step in plan.steps}:
        group = plan.group(number)
        if len(group) > 1:
            made[f"group{number}"] = potok.together(*(made[step.name] for step in group))
    made |= {f"on_{end}": potok.emit(ENDS[end], when=end) for end in ("completed", "aborted", "stuck")}  # type: ignore[arg-type]
    keep = None if plan.keep_ms is None else f"{plan.keep_ms} ms"
    declare = potok.saga(
        "made",
        by="id",
        starts=EVENTS["start"],
        clock="event",
        missing=plan.missing,  # type: ignore[arg-type]
        keep=keep,
    )
    return declare(type("Made", (), made))


def message(one: Happening, saga: str = "made") -> tuple[str, dict[str, Any]]:
    """Return the topic and the value of an event, or of an action."""
    if one.what in ACTIONS:
        return f"{saga}-control", action_of("id", one.key, one.what, one.id)[1]
    return "events", {"event_id": one.id, "event_type": one.what, "data": {"id": one.key}}


WATCHED = ("a", "b", "c")


@st.composite
def watched_plans(draw: st.DrawFn) -> Watched:
    steps = WATCHED[: draw(st.integers(1, 3))]
    undoable = frozenset(draw(st.lists(st.sampled_from(steps), unique=True)))
    return Watched(steps, undoable, draw(st.booleans()))


@st.composite
def watched_events(draw: st.DrawFn, plan: Watched) -> list[tuple[str, str, str]]:
    """Key, what happened and the id of each event; some come twice."""
    kinds = ["start", *(f"{step}.ok" for step in plan.steps)] * 2 + [f"{step}.failed" for step in plan.steps]
    kinds += [f"{step}.undone" for step in plan.steps if step in plan.undoable] * 2
    kinds += ["completed"] if plan.announced else []
    one = st.tuples(st.sampled_from(["k1", "k2"]), st.sampled_from(kinds), st.sampled_from(["e1", "e2", "e3"]))
    return draw(st.lists(one, max_size=16))


def choreography_of(plan: Watched) -> Any:
    made: dict[str, Any] = {}
    for step in plan.steps:
        undone = {"undone": EVENTS[f"{step}.undone"]} if step in plan.undoable else {}
        made[step] = potok.step(ok=EVENTS[f"{step}.ok"], failed=EVENTS[f"{step}.failed"], **undone)
    ends = {"completed": ENDS["completed"]} if plan.announced else {}
    return potok.choreography("watched", by="id", starts=EVENTS["start"], **ends)(type("Made", (), made))
