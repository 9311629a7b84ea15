"""What a saga of handlers must do with the events and the time of one instance, in plain Python."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.oracle.sagas import Happening, Refused

ACTIONS = ("retry", "skip", "abort")
ENDED = ("completed", "aborted")


@dataclass(frozen=True)
class Rules:
    """A saga: its methods by event and by timer, which events start it, and the state that it starts with.

    `name_of` returns the name of a message.
    """

    name: str
    events: Mapping[str, str]
    timers: Mapping[str, str]
    starts: frozenset[str]
    methods: Mapping[str, Callable[..., None]]
    defaults: Mapping[str, Any]
    missing: str = "dead_letter"
    keep_ms: int | None = None
    name_of: Callable[[Any], str] = lambda message: type(message).__name__


@dataclass
class Case:
    """One instance. `resumes` is what a stuck one becomes again, `failed` the timers that made it so."""

    data: dict[str, Any]
    state: str = "running"
    resumes: str = "running"
    failed: list[str] = field(default_factory=list)
    alarms: dict[str, int] = field(default_factory=dict)
    numbers: Counter[str] = field(default_factory=Counter)
    ids: set[tuple[str, str]] = field(default_factory=set)


class Actor:
    """The `self` of a handler: the state of the instance as attributes, and what a handler can do."""

    def __init__(self, play: HandlerPlay, case: Case, method: str) -> None:
        vars(self).update(copy.deepcopy(dict(play.rules.defaults)) | copy.deepcopy(case.data))
        self._play, self._case, self._method, self._status = play, case, method, case.state

    def __getattr__(self, name: str) -> Any:
        method = self._play.rules.methods[name]
        return lambda *given: method(self, *given)

    @property
    def key(self) -> str:
        return self._play.key

    @property
    def now_ms(self) -> int:
        return self._play.now

    @property
    def status(self) -> str:
        return self._status

    def send(self, message: Any) -> None:
        self._play.effects.append(("sent", message, self._number()))

    def emit(self, message: Any) -> None:
        self._play.effects.append(("emitted", message, self._number()))

    def _number(self) -> str:
        self._case.numbers[self._method] += 1
        return f"{self._play.rules.name}/{self.key}/{self._method}/{self._case.numbers[self._method]}"

    def set_timer(self, name: str, after: str) -> None:
        assert self._case.state not in ENDED and name in self._play.rules.timers
        number, unit = after.split()
        factor = {"ms": 1, "seconds": 1_000, "minutes": 60_000, "days": 86_400_000}[unit]
        self._case.alarms[name] = self._play.now + int(number) * factor

    def clear_timer(self, name: str) -> None:
        self._case.alarms.pop(name, None)

    def complete(self) -> None:
        self._play.end(self._case, "completed")

    def abort(self, reason: str) -> None:
        assert reason
        self._play.end(self._case, "aborted")

    def compensate(self, reason: str) -> None:
        assert reason and self._case.state not in ENDED
        self._case.state = "aborting"


class HandlerPlay:
    """All instances of a saga, and what they send, emit and refuse, by key."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.cases: dict[str, Case] = {}
        self.sent: dict[str, list[tuple[int, str, str]]] = {}
        self.emitted: dict[str, list[tuple[int, str]]] = {}
        self.messages: list[tuple[str, Any]] = []
        """What was sent and emitted, in order, since somebody cleared it."""
        self.refused: Counter[str] = Counter()
        self.effects: list[tuple[str, Any, str]] = []
        self.key, self.now = "", 0

    def run(self, happenings: list[Happening], end: int) -> None:
        """Let everything happen, and then time pass until the end; of an event, handlers see the field `id`."""
        for one in happenings:
            self.wait(one.key, one.at)
            self.happen(one, SimpleNamespace(id=one.key))
        for key in list(self.cases):
            self.wait(key, end)

    def happen(self, one: Happening, data: Any = None) -> None:
        self.key, self.now = one.key, one.at
        before = copy.deepcopy(self.cases.get(one.key))
        try:
            self._happen(one, data)
        except Refused:
            self.refused[self.key] += 1
            self.effects.clear()
            self.cases.pop(self.key, None)
            if before is not None:
                self.cases[self.key] = before
        self._publish()

    def wait(self, key: str, until: int) -> None:
        """Let the alarms of an instance go off, by time and then by name."""
        while key in self.cases:
            due = min(((at, name) for name, at in self.cases[key].alarms.items()), default=None)
            if due is None or due[0] > until:
                return
            self.key, self.now = key, due[0]
            del self.cases[key].alarms[due[1]]
            if due[1] == "":
                del self.cases[key]
            else:
                self._alarm(due[1])
            self._publish()

    def end(self, case: Case, state: str) -> None:
        assert case.state not in ENDED
        case.state, case.alarms = state, {}
        if self.rules.keep_ms is not None:
            # No timer can have this name.
            case.alarms[""] = self.now + max(1, self.rules.keep_ms)

    def _happen(self, one: Happening, data: Any) -> None:
        case = self.cases.get(one.key)
        mark = ("action" if one.what in ACTIONS else one.what, one.id)
        if case is None:
            if one.what not in self.rules.starts and self.rules.missing != "start":
                if self.rules.missing == "ignore" and one.what not in ACTIONS:
                    return
                raise Refused
            if one.what in ACTIONS:
                raise Refused
            case = self.cases[one.key] = Case(copy.deepcopy(dict(self.rules.defaults)))
            case.ids.add(mark)
            self._call(case, self.rules.events[one.what], data)
            return
        if mark in case.ids:
            return
        if one.what in ACTIONS:
            self._act(case, one.what)
        elif case.state not in ENDED and one.what not in self.rules.starts:
            self._call(case, self.rules.events[one.what], data)
        case.ids.add(mark)

    def _act(self, case: Case, action: str) -> None:
        if case.state in ENDED or (action != "abort" and case.state != "stuck"):
            raise Refused
        failed, case.failed = case.failed, []
        if action == "abort":
            self._call(case, "on_abort")
            if case.state not in ENDED:
                self.end(case, "aborted")
            return
        case.state = case.resumes
        for name in failed if action == "retry" else ():
            if self.cases[self.key].state not in ENDED:
                self.cases[self.key].alarms.pop(name, None)
                self._alarm(name)

    def _alarm(self, name: str) -> None:
        before, done = copy.deepcopy(self.cases[self.key]), len(self.effects)
        try:
            self._call(self.cases[self.key], self.rules.timers[name])
        except Refused:
            self.refused[self.key] += 1
            del self.effects[done:]
            if before.state != "stuck":
                before.resumes = before.state
            before.state = "stuck"
            before.failed.append(name)
            self.cases[self.key] = before

    def _call(self, case: Case, method: str, *given: Any) -> None:
        actor = Actor(self, case, method)
        try:
            if method in self.rules.methods:
                self.rules.methods[method](actor, *given)
        except Exception as error:
            raise Refused from error
        case.data = {name: value for name, value in vars(actor).items() if not name.startswith("_")}

    def _publish(self) -> None:
        for kind, message, number in self.effects:
            name = self.rules.name_of(message)
            if kind == "sent":
                self.sent.setdefault(self.key, []).append((self.now, name, number))
            else:
                self.emitted.setdefault(self.key, []).append((self.now, name))
            self.messages.append((kind, message))
        self.effects.clear()
