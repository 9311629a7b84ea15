"""Watermarks: the event time up to which each windowed step has seen all its input."""

from __future__ import annotations

from collections.abc import Mapping

from potok.operators.windows.expiry import NEVER
from potok.topology.graph import Topology

StreamTimes = Mapping[str, Mapping[int, int]]
Partitions = frozenset[tuple[str, int]]


def windowed_steps(topology: Topology) -> dict[str, set[str]]:
    """Return the steps that have windows to close, with the topics whose records can reach them."""
    return {node.name: topology.upstream_topics(node) for node in topology if node.timed}


def watermark(
    topics: set[str], partitions: Mapping[str, Mapping[int, int]], stream_times: StreamTimes, idle: Partitions
) -> int:
    """Return the least stream time of all partitions that can still bring records; if all are idle, the greatest."""
    waiting: list[int] = []
    quiet: list[int] = []
    for topic in topics:
        for partition in partitions.get(topic, {}):
            time = stream_times.get(topic, {}).get(partition, NEVER)
            (quiet if (topic, partition) in idle else waiting).append(time)
    if waiting:
        return min(waiting)
    return max(quiet, default=NEVER)


def advance_watermarks(
    steps: Mapping[str, set[str]],
    partitions: Mapping[str, Mapping[int, int]],
    stream_times: StreamTimes,
    idle: Partitions,
    last: Mapping[str, int],
) -> dict[str, int]:
    """Return the watermark of each step; it never decreases, so a final window is not opened again."""
    return {
        step: max(last.get(step, NEVER), watermark(topics, partitions, stream_times, idle))
        for step, topics in steps.items()
    }


def empty_batch_due(watermarks: Mapping[str, int], next_ends: Mapping[str, int]) -> bool:
    """Whether an empty batch would close a window."""
    return any(end <= watermarks.get(step, NEVER) for step, end in next_ends.items())
