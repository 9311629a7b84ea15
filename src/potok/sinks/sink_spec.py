"""What all sinks outside the log share: a target is told where to deliver, an outlet delivers.

A target is frozen and travels to the tasks, which prepare the records there; an outlet is opened once, in the driver,
and takes the records of one batch after the other. Some targets are written by the tasks themselves, in parts that stay
out of sight until the outlet accepts them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.records.formats.format import Column
from potok.sinks.guarantee import Guarantee

Failures = dict[int, str]
"""The records that a sink does not take, by index, each with the reason: they become dead letters."""

NO_VALUE = "a null value says nothing without its key: pass with_key=True"


@dataclass(frozen=True, slots=True)
class Types:
    """The types of the keys and values that come; None is dynamic."""

    key: pa.DataType | None
    value: pa.DataType | None


@dataclass(frozen=True, slots=True)
class Rows:
    """Records on their way out, as columns, in their order."""

    key: Column
    value: Column
    timestamp: npt.NDArray[np.int64]
    headers: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.timestamp)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Keys and values in the form in which a target wants them, one for each record, and those it cannot take."""

    key: Column
    value: Column
    failures: Failures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Opening:
    """Who delivers: a step of a query, in its present epoch, after the batch that it committed last."""

    query: str
    step: str
    guarantee: Guarantee
    types: Types
    epoch: int
    committed: int


@dataclass(frozen=True, slots=True)
class Batch:
    """One attempt at a batch. After a crash the batch comes again under its number, in a later epoch."""

    epoch: int
    number: int


class SinkWriter(ABC):
    """An open sink, in the driver."""

    @abstractmethod
    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        """Deliver the records of one batch, and return once they are there.

        Whatever does not pass is tried again for a while; what then still fails raises `DeliveryFailed`.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back what was opened."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one task has written of a batch, out of sight."""

    path: str
    rows: int
    bytes: int


class PartWriter(ABC):
    """An open sink whose records the tasks have written already."""

    @abstractmethod
    def accept(self, batch: Batch, parts: Sequence[Part]) -> None:
        """Make the parts of one batch visible."""

    @abstractmethod
    def close(self) -> None:
        """Give back what was opened."""


class SinkSpec(ABC):
    """Where to deliver. Subclasses are frozen and can be pickled; what they show of themselves holds no secret."""

    __slots__ = ()

    verb: ClassVar[str]
    """The verb of the DSL that makes it."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The place, for people."""

    @abstractmethod
    def check(self, types: Types, guarantee: Guarantee) -> None:
        """Raise a `TopologyError` for what can never be delivered there, before anything runs."""

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """In a task: bring records into the form that the outlet wants."""
        return Prepared(rows.key, rows.value)

    @abstractmethod
    def open(self, opening: Opening) -> SinkWriter | PartWriter:
        """In the driver: get ready to deliver."""


class PartTarget(SinkSpec):
    """A target that the tasks write."""

    __slots__ = ()

    @abstractmethod
    def write(self, rows: Rows, query: str, step: str) -> Part:
        """In a task: write records out of sight."""

    @abstractmethod
    def open(self, opening: Opening) -> PartWriter: ...
