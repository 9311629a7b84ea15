"""Steps that store one value per key, or per key and window."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from potok.expressions.function import Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes.node import Node
from potok.topology.nodes.windows import Window


@dataclass(frozen=True, slots=True)
class AggregatePart:
    """A field of an aggregate that merges: `op` is count, sum, min or max of the non-null results of `function`, which
    is an expression of type BIGINT or DOUBLE; without one, `count` counts records."""

    name: str
    op: str
    type: pa.DataType
    function: Function | None = None
    initial: int | float | None = None
    """The initial value of a key; without it, a key without values has no result."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate: a kind by name, with the function or the initial value that the kind needs.

    `count`; `sum`, `min`, `max`, `avg`, `collect_list`, `count_distinct`, `latest`, `earliest` of `function`'s
    result (the whole value without one); `reduce` by a function of two values; `fold` from `initial` by a
    function of key, value and the aggregate so far.
    """

    kind: str
    function: Function | None = None
    initial: object = None
    make_initial: Function | None = None
    schema: Schema | None = None
    parts: tuple[AggregatePart, ...] = ()
    """For a fold whose result is a struct of such fields: `function` as columns that merge."""
    by_offset: bool = False
    """For a fold in sessions: aggregate the records in the order of their offsets, not of their timestamps."""


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(Node):
    """A table of one aggregate per key, or per key and window. It emits one change per row and batch, or, with
    `each_record`, one for each record."""

    upstream: Node
    aggregation: Aggregation
    window: Window | None = None
    each_record: bool = False

    @property
    def stateful(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return self.window is not None

    @property
    def is_table(self) -> bool:
        return True
