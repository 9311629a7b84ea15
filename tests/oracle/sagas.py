"""What a saga of steps must do with the events and the time of one instance, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True)
class Step:
    """A step of a group. Without `undo` it is not compensated; with `waits` the end of its compensation is awaited."""

    name: str
    group: int
    undo: bool = False
    waits: bool = False
    timeout_ms: int | None = None
    retries: int = 0
    delay_ms: int = 0
    pivot: bool = False


@dataclass(frozen=True)
class Plan:
    """A saga: its steps in order, what becomes of events without an instance, and how long ended ones are kept."""

    steps: tuple[Step, ...]
    missing: str = "dead_letter"
    keep_ms: int | None = None

    def group(self, number: int) -> list[Step]:
        return [step for step in self.steps if step.group == number]

    @property
    def last(self) -> int:
        return self.steps[-1].group


class Happening(NamedTuple):
    """An event or an action: `what` is `start`, `retry`, `skip`, `abort`, or the name of a step and its part."""

    at: int
    key: str
    what: str
    id: str


class Refused(Exception):
    """An event that becomes a dead letter."""


@dataclass
class Case:
    """One instance. What it is stuck at is the status of its steps, not a state of its own."""

    plan: Plan
    way: str = "forwards"
    group: int = -1
    status: dict[str, str] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    to_undo: list[str] = field(default_factory=list)
    alarms: dict[str, int] = field(default_factory=dict)
    ids: set[tuple[str, str]] = field(default_factory=set)

    @property
    def state(self) -> str:
        if self.way in ("completed", "aborted"):
            return self.way
        if {"stuck", "undo stuck"} & set(self.status.values()):
            return "stuck"
        return {"forwards": "running", "backwards": "aborting"}[self.way]

    @property
    def committed(self) -> bool:
        """Whether a pivot is done."""
        return any(step.pivot and step.name in self.finished for step in self.plan.steps)


class Play:
    """All instances of a plan, and what they send, emit and refuse, by key."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.cases: dict[str, Case] = {}
        self.sent: dict[str, list[tuple[int, str, str]]] = {}
        self.emitted: dict[str, list[tuple[int, str]]] = {}
        self.refused: dict[str, int] = {}
        self._key, self._now = "", 0

    def run(self, happenings: list[Happening], end: int) -> None:
        """Let everything happen, and then time pass until the end."""
        for one in happenings:
            self.wait(one.key, one.at)
            self.happen(one)
        for key in list(self.cases):
            self.wait(key, end)

    def happen(self, one: Happening) -> None:
        self._key, self._now = one.key, one.at
        try:
            self._happen(one)
        except Refused:
            self._refuse()

    def _refuse(self) -> None:
        self.refused[self._key] = self.refused.get(self._key, 0) + 1

    def wait(self, key: str, until: int) -> None:
        """Let the alarms of an instance go off, by time and then by name."""
        while key in self.cases and (due := min(((at, name) for name, at in self._alarms(key)), default=None)):
            if due[0] > until:
                return
            self._key, self._now = key, due[0]
            case = self.cases[key]
            del case.alarms[due[1]]
            self._alarm(case, due[1])

    def _alarms(self, key: str) -> list[tuple[str, int]]:
        return list(self.cases[key].alarms.items())

    def _alarm(self, case: Case, name: str) -> None:
        if name == "forget":
            del self.cases[self._key]
            return
        kind, _, of = name.partition(":")
        step = next(one for one in self.plan.steps if one.name == of)
        if kind == "retry":
            self._do(case, step)
        elif kind == "undo_retry":
            self._undo(case, step)
        elif kind == "undo_timeout":
            self._undo_failed(case, step)
        elif case.committed:
            self._failed(case, step)
        else:
            case.status[of] = "silent"
            self._turn_back(case)

    def _happen(self, one: Happening) -> None:
        case = self.cases.get(one.key)
        action = one.what in ("retry", "skip", "abort")
        if case is None:
            if one.what == "start":
                case = self.cases[one.key] = Case(self.plan)
                case.ids.add((one.what, one.id))
                self._enter(case, 0)
            elif action or self.plan.missing == "dead_letter":
                raise Refused
            return
        mark = ("action" if action else one.what, one.id)
        if mark in case.ids:
            return
        if action:
            self._act(case, one.what)
        elif one.what != "start":
            name, _, part = one.what.partition(".")
            step = next(step for step in self.plan.steps if step.name == name)
            if name not in case.status:
                raise Refused
            self._answer(case, step, part)
        case.ids.add(mark)

    def _answer(self, case: Case, step: Step, part: str) -> None:
        status, forwards = case.status[step.name], case.way == "forwards"
        if part == "ok" and forwards and status in ("asked", "pausing", "stuck"):
            self._quiet(case, step)
            case.status[step.name] = "done"
            case.finished.append(step.name)
            if case.state == "running":
                self._go_on(case)
        elif part == "failed" and forwards and status == "asked":
            self._quiet(case, step)
            self._failed(case, step)
        elif part == "undone" and status in ("undo asked", "undo pausing", "undo stuck"):
            self._quiet(case, step)
            case.status[step.name] = "undone"
            self._go_back(case)
        elif part == "undo_failed" and status == "undo asked":
            self._quiet(case, step)
            self._undo_failed(case, step)

    def _act(self, case: Case, action: str) -> None:
        if case.way in ("completed", "aborted"):
            raise Refused
        if action == "abort":
            if case.way == "backwards":
                for name in case.to_undo:
                    case.status[name] = "given up"
                self._end(case, "aborted")
            elif case.committed:
                raise Refused
            else:
                self._turn_back(case)
            return
        if case.state != "stuck":
            raise Refused
        for step in self.plan.steps:
            status = case.status.get(step.name)
            if status in ("stuck", "undo stuck"):
                case.failures[step.name] = 0
                if action == "skip":
                    case.status[step.name] = "skipped" if status == "stuck" else "given up"
                elif status == "stuck":
                    self._do(case, step)
                else:
                    self._undo(case, step)
        if case.way == "forwards":
            self._go_on(case)
        else:
            self._go_back(case)

    def _quiet(self, case: Case, step: Step) -> None:
        case.alarms = {name: at for name, at in case.alarms.items() if name.partition(":")[2] != step.name}

    def _enter(self, case: Case, group: int) -> None:
        case.group = group
        for step in self.plan.group(group):
            self._do(case, step)

    def _go_on(self, case: Case) -> None:
        while all(case.status[step.name] in ("done", "skipped") for step in self.plan.group(case.group)):
            if case.group == self.plan.last:
                self._end(case, "completed")
                return
            self._enter(case, case.group + 1)

    def _do(self, case: Case, step: Step) -> None:
        case.tries[step.name] = case.tries.get(step.name, 0) + 1
        self._send(f"Do-{step.name}", f"{step.name}/{case.tries[step.name]}")
        case.status[step.name] = "asked"
        if step.timeout_ms is not None:
            case.alarms[f"timeout:{step.name}"] = self._now + step.timeout_ms

    def _failed(self, case: Case, step: Step) -> None:
        failures = case.failures[step.name] = case.failures.get(step.name, 0) + 1
        if failures <= step.retries:
            case.status[step.name] = "pausing"
            if step.delay_ms:
                case.alarms[f"retry:{step.name}"] = self._now + step.delay_ms
            else:
                self._do(case, step)
        elif case.committed:
            case.status[step.name] = "stuck"
            self._stuck()
        else:
            case.status[step.name] = "failed"
            self._turn_back(case)

    def _turn_back(self, case: Case) -> None:
        """Compensate: what is unanswered first, the last step of the plan before the others; then what is done, the
        last one before the others."""
        case.way, case.alarms = "backwards", {}
        unanswered = [step.name for step in self.plan.steps if case.status.get(step.name) in ("asked", "silent")]
        undoable = {step.name for step in self.plan.steps if step.undo}
        done = [name for name in case.finished if case.status[name] == "done"]
        for name, status in case.status.items():
            if status == "pausing":
                case.status[name] = "failed"
        case.to_undo = [name for name in [*reversed(unanswered), *reversed(done)] if name in undoable]
        for name in case.to_undo:
            case.failures[name] = case.tries[name] = 0
            case.status[name] = "to undo"
        self._go_back(case)

    def _go_back(self, case: Case) -> None:
        for name in case.to_undo:
            if case.status[name] == "to undo":
                self._undo(case, next(step for step in self.plan.steps if step.name == name))
            if case.status[name] not in ("undone", "given up"):
                return
        self._end(case, "aborted")

    def _undo(self, case: Case, step: Step) -> None:
        case.tries[step.name] += 1
        self._send(f"Undo-{step.name}", f"{step.name}.undo/{case.tries[step.name]}")
        case.status[step.name] = "undo asked" if step.waits else "undone"
        if step.waits and step.timeout_ms is not None:
            case.alarms[f"undo_timeout:{step.name}"] = self._now + step.timeout_ms

    def _undo_failed(self, case: Case, step: Step) -> None:
        failures = case.failures[step.name] = case.failures.get(step.name, 0) + 1
        if failures > step.retries:
            case.status[step.name] = "undo stuck"
            self._stuck()
        elif step.delay_ms:
            case.status[step.name] = "undo pausing"
            case.alarms[f"undo_retry:{step.name}"] = self._now + step.delay_ms
        else:
            self._undo(case, step)

    def _stuck(self) -> None:
        self._emit("stuck")
        self._refuse()

    def _end(self, case: Case, end: str) -> None:
        case.way, case.alarms = end, {}
        self._emit(end)
        if self.plan.keep_ms is not None:
            case.alarms["forget"] = self._now + max(1, self.plan.keep_ms)

    def _send(self, command: str, key: str) -> None:
        self.sent.setdefault(self._key, []).append((self._now, command, f"made/{self._key}/{key}"))

    def _emit(self, event: str) -> None:
        self.emitted.setdefault(self._key, []).append((self._now, event))
