"""What a watched saga must show of the events of one instance, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Watched:
    """Which steps there are, which of them can be undone, and whether an event announces the end."""

    steps: tuple[str, ...]
    undoable: frozenset[str]
    announced: bool = False


@dataclass
class View:
    """One instance: what each step is known to be, and how it ended."""

    plan: Watched
    began: bool = False
    known: dict[str, str] = field(default_factory=dict)
    ended: str = ""
    seen: set[tuple[str, str]] = field(default_factory=set)

    @property
    def state(self) -> str:
        return self.ended or ("aborting" if self.goes_wrong else "running")

    @property
    def goes_wrong(self) -> bool:
        return bool({"failed", "undone"} & set(self.known.values()))

    def happen(self, what: str, id_: str) -> None:
        if self.ended or (what, id_) in self.seen:
            return
        self.seen.add((what, id_))
        name, _, part = what.partition(".")
        if what == "start":
            self.began = True
        elif what == "completed":
            self.ended = "completed"
        elif part != "ok":
            self.known[name] = part
        else:
            self.known.setdefault(name, "done")
        if self.ended:
            return
        if self.goes_wrong:
            if not any(self.known.get(step) == "done" for step in self.plan.undoable):
                self.ended = "aborted"
        elif self.began and not self.plan.announced and set(self.known) == set(self.plan.steps):
            self.ended = "completed"


def watch(plan: Watched, events: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return the state of each instance after its events: key, what happened, and the id of the event."""
    views: dict[str, View] = {}
    for key, what, id_ in events:
        views.setdefault(key, View(plan)).happen(what, id_)
    return {key: view.state for key, view in views.items()}
