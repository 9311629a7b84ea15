"""Steps that change the key or the shard of records."""

from __future__ import annotations

from dataclasses import dataclass

from potok.expressions.function import Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes.node import Node


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
