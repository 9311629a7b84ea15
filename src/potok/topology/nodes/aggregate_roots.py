"""Event-sourced aggregates: processors whose state is a table, and whose outputs are events and results."""

from __future__ import annotations

from dataclasses import dataclass

from potok.topology.nodes.processors import Process
from potok.topology.stores import RowStore


@dataclass(frozen=True, slots=True, eq=False)
class AggregateRoot(Process):
    """Decides the commands of an aggregate, and folds its events. This node is the table of the states."""

    events_topic: str = ""
    summary: str = ""
    description: str = ""
    """The commands and their schemas, as JSON."""

    @property
    def stateful(self) -> bool:
        return True

    @property
    def is_table(self) -> bool:
        return True

    @property
    def detail(self) -> str:
        return self.summary

    @property
    def aligns(self) -> bool:
        return True

    def cells_of(self, store: str) -> str:
        rows = any(name == store and isinstance(declared, RowStore) for name, declared in self.stores)
        return self.name if rows else f"{self.name}/{store}"


@dataclass(frozen=True, slots=True, eq=False)
class Fold(AggregateRoot):
    """Folds the events of a topic with a class of the user; this node is the table of what its instances return."""
