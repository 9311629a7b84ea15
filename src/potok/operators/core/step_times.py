"""Measure the steps of a task, name the current one in logs, and sample the traces of its input."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from potok.monitoring.logs import log_context
from potok.monitoring.trace_context import TRACEPARENT

MOST_TRACES = 16
"""How many traces of the input of a batch are linked to its trace."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """When a step first began and last ended (ns since 1970), and how long it computed in all tasks together."""

    began_ns: int
    ended_ns: int
    busy_ns: int

    def plus(self, other: StepTime) -> StepTime:
        return StepTime(
            min(self.began_ns, other.began_ns), max(self.ended_ns, other.ended_ns), self.busy_ns + other.busy_ns
        )


class StepTimes:
    """The times of the steps of one task. A step pushes its output to the next one, whose time is not its own."""

    def __init__(self) -> None:
        self.steps: dict[str, StepTime] = {}
        self.traces: list[str] = []
        """The `traceparent` of some records that were read."""
        self._inner_ns = 0

    @contextmanager
    def of(self, step: str) -> Iterator[None]:
        """Count the time of this block for a step, without that of the steps that run inside it."""
        began_ns, start, outer_ns = time.time_ns(), time.perf_counter_ns(), self._inner_ns
        self._inner_ns = 0
        try:
            with log_context(step=step):
                yield
        finally:
            whole_ns = time.perf_counter_ns() - start
            found = StepTime(began_ns, began_ns + whole_ns, whole_ns - self._inner_ns)
            self.steps[step] = self.steps[step].plus(found) if step in self.steps else found
            self._inner_ns = outer_ns + whole_ns

    def sample(self, headers: pa.Array) -> None:
        """Remember the traces of the first records that have one."""
        if len(self.traces) < MOST_TRACES:
            self.traces += traces_of(headers, MOST_TRACES - len(self.traces))


def merge(times: dict[str, StepTime], other: Mapping[str, StepTime]) -> None:
    """Add the times of another task."""
    for step, found in other.items():
        times[step] = times[step].plus(found) if step in times else replace(found)


def traces_of(headers: pa.Array, most: int) -> list[str]:
    """Return the `traceparent` headers of the first records that have one and were sampled by their sender."""
    if headers.null_count == len(headers):
        return []
    flat = headers.flatten()
    values = flat.field("value").filter(pc.equal(flat.field("name"), TRACEPARENT))
    texts = [value.decode("latin-1") for value in values[: 4 * most].to_pylist() if value]
    return [text for text in dict.fromkeys(texts) if _is_sampled(text)][:most]


def _is_sampled(traceparent: str) -> bool:
    parts = traceparent.split("-")
    return len(parts) >= 4 and parts[3][1:2] in tuple("13579bdf")
