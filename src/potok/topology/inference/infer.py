"""Infer the key and value types of each step, and which functions can be traced, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import potok.topology.inference.joins
import potok.topology.inference.patterns
import potok.topology.inference.processors
import potok.topology.inference.records
import potok.topology.inference.tables  # noqa: F401 - these say what is known of each kind of step
from potok.topology.alignment import tables_looked_up
from potok.topology.graph import Topology
from potok.topology.inference.step import Step, infer_step, windowed_key
from potok.topology.nodes import Aggregate, Node

__all__ = ["Inferred", "Step", "infer", "infer_upstream", "windowed_key"]


@dataclass(frozen=True, slots=True)
class Inferred:
    """The steps of a topology, by node."""

    steps: dict[Node, Step]

    def __getitem__(self, node: Node) -> Step:
        return self.steps[node]


def infer_upstream(node: Node) -> Step:
    """Return the type and the traces of one step before its topology is complete."""
    steps: dict[Node, Step] = {}

    def step_of(each: Node) -> Step:
        if each not in steps:
            steps[each] = infer_step(each, [step_of(upstream) for upstream in each.upstreams])
        return steps[each]

    return step_of(node)


def infer(topology: Topology) -> Inferred:
    """Return types and traces of all steps. A field that does not exist is reported here, with the location of the
    lambda.
    """
    steps: dict[Node, Step] = {}
    looked_up = tables_looked_up(topology)
    for node in topology:
        known = replace(node, each_record=True) if isinstance(node, Aggregate) and node in looked_up else node
        steps[node] = infer_step(known, [steps[upstream] for upstream in node.upstreams])
    return Inferred(steps)
