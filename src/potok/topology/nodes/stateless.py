"""Steps that look at one record at a time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from potok.expressions.function import Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Filter(Node):
    """Keep the records for which `predicate` is true (or, with `negate`, is not)."""

    upstream: Node
    predicate: Function
    negate: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Map(Node):
    """Replace key and value. If `null_stays`, a record without a value has none behind it either, and nothing in the
    `value_parts` of its key: the positions of its fields, or 0 for a key that is no struct."""

    upstream: Node
    function: Function
    key_schema: Schema | None = None
    schema: Schema | None = None
    null_stays: bool = False
    value_parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class MapValues(Node):
    """Replace the value; the key, and so the shard, stays. If `null_stays`, so does a value that is not there."""

    upstream: Node
    function: Function
    schema: Schema | None = None
    null_stays: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class FlatMap(Node):
    """Replace a record by any number of (key, value) pairs."""

    upstream: Node
    function: Function
    key_schema: Schema | None = None
    schema: Schema | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FlatMapValues(Node):
    """Replace a value by any number of values under the same key."""

    upstream: Node
    function: Function
    schema: Schema | None = None


class About(StrEnum):
    """What a step can know of a record beside its key and value."""

    TIMESTAMP = "timestamp"
    PARTITION = "partition"
    OFFSET = "offset"
    HEADERS = "headers"
    PROCESSING_TIME = "processing_time"


@dataclass(frozen=True, slots=True, eq=False)
class Annotate(Node):
    """Put what is known of a record beside its value into it: fields by name, behind those that it has."""

    upstream: Node
    fields: tuple[tuple[str, About], ...]

    @property
    def detail(self) -> str:
        return ", ".join(f"{name} is its {about}" for name, about in self.fields)


@dataclass(frozen=True, slots=True, eq=False)
class Branch(Node):
    """Send each record to the first arm whose predicate is true, or to the last arm if none is."""

    upstream: Node
    predicates: tuple[Function, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Arm(Node):
    """One way out of a branch; `index` counts the predicates, and the arm after the last takes the rest."""

    upstream: Branch
    index: int

    @property
    def upstream_output(self) -> int:
        return self.index


@dataclass(frozen=True, slots=True, eq=False)
class Merge(Node):
    """The records of several streams as one."""

    sources: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Peek(Node):
    """Call `action` for each record, and pass the record on."""

    upstream: Node
    action: Function
