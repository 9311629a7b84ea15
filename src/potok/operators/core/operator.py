"""Operators: the running steps of one stage in one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from potok.expressions.failures import FailureLog
from potok.operators.core.chunk import Chunk
from potok.operators.core.dead_letters import DeadLetters, Reason
from potok.operators.core.step_times import StepTimes


def all_but(rows: Mapping[int, object], count: int) -> npt.NDArray[np.bool_]:
    """Return a mask that is true for every row that is not among these."""
    mask = np.ones(count, np.bool_)
    mask[list(rows)] = False
    return mask


class Receiver(Protocol):
    """Receives the records of a step."""

    def push(self, chunk: Chunk) -> None: ...


@dataclass(slots=True)
class Task:
    """What the operators of one task share. `jumps` counts, by topic, the records that advanced the stream time by
    days."""

    dead_letters: DeadLetters
    failures: FailureLog = field(default_factory=FailureLog)
    records_in: Counter[str] = field(default_factory=Counter)
    records_out: Counter[str] = field(default_factory=Counter)
    jumps: Counter[str] = field(default_factory=Counter)
    processing_time_ms: int = 0
    times: StepTimes | None = None
    """Measures the steps, if the batch is traced or logs name steps."""


class Operator:
    """A running step: chunks are pushed in, results are pushed on; `finish` is called after the last chunk.

    A part of a step, or an exchange before it, is not `counted`. `step` is the name for dead letters: that of the
    user's step where a part has its own name.
    """

    counted = True

    def __init__(self, name: str, task: Task) -> None:
        self.name = self.step = name
        self.task = task
        self.downstream: list[Receiver] = []

    def push(self, chunk: Chunk) -> None:
        if len(chunk):
            if self.counted:
                self.task.records_in[self.name] += len(chunk)
            if self.task.times is None:
                self.process(chunk)
            else:
                with self.task.times.of(self.step):
                    self.process(chunk)

    def connect(self, receiver: Receiver, output: int | None = None) -> None:
        """Push results on to a receiver. An operator with several outputs takes the number of the output."""
        assert output is None
        self.downstream.append(receiver)

    def port(self, index: int) -> Receiver:
        """Return the receiver for the records of the upstream with this number."""
        return self

    @property
    def state_tables(self) -> list[str]:
        """The names of the cell tables of this operator."""
        return []

    def next_due(self) -> int | None:
        """Return the least watermark at which this operator has something to do; called after the commit."""
        return None

    def next_timer(self) -> int | None:
        """Return the least processing time at which this operator has something to do, with or without records;
        called after the commit.
        """
        return None

    def process(self, chunk: Chunk) -> None:
        """Process the records of one chunk. Steps without their own work pass them on."""
        self.emit(chunk)

    def finish(self) -> None:
        """Process what needs all records of the task. Upstream operators have finished."""

    def set_aside(self, chunk: Chunk, errors: Mapping[int, str], reason: Reason = Reason.ERROR) -> Chunk:
        """Make dead letters of the records that failed, by index; return the others."""
        if not errors:
            return chunk
        self.task.dead_letters.add(chunk, errors, self.step, reason)
        return chunk.where(all_but(errors, len(chunk)))

    def emit(self, chunk: Chunk) -> None:
        if len(chunk):
            if self.counted:
                self.task.records_out[self.name] += len(chunk)
            for receiver in self.downstream:
                receiver.push(chunk)


class SeveralOutputs(Operator):
    """An operator whose results go to numbered outputs."""

    def __init__(self, name: str, task: Task) -> None:
        super().__init__(name, task)
        self.outputs: dict[int, list[Receiver]] = {}

    def connect(self, receiver: Receiver, output: int | None = None) -> None:
        if output is None:
            super().connect(receiver)
        else:
            self.outputs.setdefault(output, []).append(receiver)
