"""Sagas: processors whose stores are instances and whose outputs are commands and events."""

from __future__ import annotations

from dataclasses import dataclass

from potok.topology.nodes.processors import Process


@dataclass(frozen=True, slots=True, eq=False)
class Saga(Process):
    """Advances the instances of a saga with each event, and with each timer that is due."""

    by: str = ""
    clock: str = "wall"
    grace_ms: int = 0
    summary: str = ""
    versions: tuple[tuple[int, str], ...] = ()
    """The structure of each version of its definition."""

    @property
    def detail(self) -> str:
        return self.summary
