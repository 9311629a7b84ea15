"""Steps that process one record at a time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

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
    """Replace key and value. If `null_stays`, a record without a value still has none, and its key has null in its
    `value_parts`: the positions of its fields, or 0 for a key that is not a struct.
    """

    upstream: Node
    function: Function
    key_schema: Schema | None = None
    schema: Schema | None = None
    null_stays: bool = False
    value_parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class MapValues(Node):
    """Replace the value; the key, and so the shard, does not change. If `null_stays`, neither does a null value."""

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


FrameFormat = Literal["arrow", "pandas", "polars"]
"""What a function of columns gets: an Arrow table, or a DataFrame of pandas or Polars."""


@dataclass(frozen=True, slots=True, eq=False)
class MapBatches(Node):
    """Replace the values by the result of a function of many records, as columns. Null values stay null.

    `setup` returns the second argument of the function, and is called once in each process. With `row_column`, the
    function gets the numbers of the records, and returns any number of rows for each.
    """

    upstream: Node
    function: Function
    format: FrameFormat
    schema: Schema | None = None
    setup: Function | None = None
    with_key: bool = False
    row_column: str = ""

    @property
    def detail(self) -> str:
        return self.format


class About(StrEnum):
    """The metadata of a record that a step can read, in addition to key and value."""

    TIMESTAMP = "timestamp"
    PARTITION = "partition"
    OFFSET = "offset"
    HEADERS = "headers"
    PROCESSING_TIME = "processing_time"


@dataclass(frozen=True, slots=True, eq=False)
class Annotate(Node):
    """Add metadata of a record to its value: fields by name, after those that it has."""

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
    """One output of a branch; `index` counts the predicates, and the arm after the last takes the remaining
    records.
    """

    upstream: Branch
    index: int

    @property
    def upstream_output(self) -> int:
        return self.index


@dataclass(frozen=True, slots=True, eq=False)
class Merge(Node):
    """Merge the records of several streams."""

    sources: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Peek(Node):
    """Call `action` for each record, and pass the record on unchanged."""

    upstream: Node
    action: Function


@dataclass(frozen=True, slots=True, eq=False)
class SelectKey(Node):
    """Replace the key by a function of key and value."""

    upstream: Node
    function: Function
    key_schema: Schema | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Repartition(Node):
    """Move each record to the shard of its key."""

    upstream: Node
