"""Divide a topology into stages: a stage ends where records must move to the shard of their key."""

from __future__ import annotations

from dataclasses import dataclass

from potok.records.schema_registry.connection import Connection
from potok.topology.alignment import AlignedTopics, aligned_topics, tables_looked_up
from potok.topology.graph import Topology
from potok.topology.inference.infer import Inferred, infer
from potok.topology.nodes import Aggregate, Node, Repartition, TableRecords, TableSource, ToTable
from potok.topology.pruning import used_fields


@dataclass(frozen=True, slots=True)
class Plan:
    """A topology with the level of each step. Level 0 runs where records are read, the others on the shards.

    All steps of a level run in one task for each shard, so a batch costs one shuffle for each level, however many
    steps, branches and sinks the topology has.
    """

    topology: Topology
    inferred: Inferred
    levels: dict[Node, int]
    columns: dict[str, list[str] | None]
    shards: int
    aligned: tuple[AlignedTopics, ...]
    looked_up: frozenset[Node]
    personal_keys: str = ""
    """The location of the keys of personal data."""
    schema_registry: Connection | None = None
    """The schema registry of formats that name none."""

    @property
    def depth(self) -> int:
        return max(self.levels.values())


def make_plan(topology: Topology, shards: int) -> Plan:
    inferred = infer(topology)
    levels: dict[Node, int] = {}
    for node in topology:
        levels[node] = _level(node, inferred, levels)
    whole = topology.like or topology
    known = inferred if whole is topology else infer(whole)
    used = used_fields(whole, known)
    columns = {source.topic: None if fields is None else sorted(fields) for source, fields in used.items()}
    return Plan(topology, inferred, levels, columns, shards, aligned_topics(topology), tables_looked_up(topology))


def _level(node: Node, inferred: Inferred, levels: dict[Node, int]) -> int:
    if isinstance(node, TableRecords):
        return 0
    if node.gathers:
        return max(levels[upstream] + (not _in_place(node, upstream, inferred)) for upstream in node.upstreams)
    level = max((levels[upstream] for upstream in node.upstreams), default=0)
    return level + 1 if _moves(node, inferred) else level


def _in_place(node: Node, upstream: Node, inferred: Inferred) -> bool:
    """Whether records are on the shard that a step needs: that of their key or, for a table with windows, of the
    grouping key.
    """
    both_windowed = inferred[upstream].window is not None and inferred[node].window is not None
    return inferred[upstream].sharded or both_windowed


def _moves(node: Node, inferred: Inferred) -> bool:
    """Whether the records of a node must first move to the shard of their key."""
    if isinstance(node, TableSource | Repartition):
        return True
    return isinstance(node, Aggregate | ToTable) and not inferred[node.upstream].sharded
