"""The user's own steps, sagas and aggregates among them, and the step that orders records for them."""

from __future__ import annotations

from dataclasses import dataclass

from potok.expressions.function import Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes.node import Node
from potok.topology.processor import Processor
from potok.topology.stores import RowStore, Store, WindowStore


@dataclass(frozen=True, slots=True, eq=False)
class Process(Node):
    """Calls a processor for each record. This node emits its main output; channels emit the others.

    With `fixed_key`, all output has the key of the record.
    """

    upstream: Node
    processor: Processor
    functions: tuple[Function, ...]
    stores: tuple[tuple[str, Store], ...] = ()
    channels: tuple[tuple[str, Schema | None], ...] = ()
    key_schema: Schema | None = None
    schema: Schema | None = None
    fixed_key: bool = False

    @property
    def keeps(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return self.processor.has_timers or any(isinstance(store, WindowStore) for _, store in self.stores)

    @property
    def gathers(self) -> bool:
        return True

    @property
    def aligns(self) -> bool:
        """Whether the records of a batch are processed in the order in which aligned topics are read."""
        return False

    def cells_of(self, store: str) -> str:
        """Return the name of the cells of a store."""
        return f"{self.name}/{store}"


@dataclass(frozen=True, slots=True, eq=False)
class Channel(Node):
    """One of the named outputs of a processor."""

    upstream: Process
    index: int
    schema: Schema | None = None

    @property
    def upstream_output(self) -> int:
        return self.index


@dataclass(frozen=True, slots=True, eq=False)
class StoreTable(Node):
    """The content of a value store of a processor, as a readable table."""

    upstream: Process
    index: int
    store: str

    @property
    def upstream_output(self) -> int:
        return self.index

    @property
    def stateful(self) -> bool:
        return True

    @property
    def is_table(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Ordered(Node):
    """Buffers records until no earlier one can be accepted, and emits them by event time.

    A record is late once the stream time of its partition is more than `grace_ms` past it.
    """

    upstream: Node
    grace_ms: int

    @property
    def keeps(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return True

    @property
    def gathers(self) -> bool:
        return True

    @property
    def holds_back_ms(self) -> int:
        return self.grace_ms


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
    """Folds the events of a topic with a class of the user; this node is the table of the states that its instances
    return."""
