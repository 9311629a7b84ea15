"""The interface of all sinks: a sink spec describes the destination, a sink writer delivers.

A sink spec is frozen and sent to the tasks, which prepare the records; a sink writer is opened once, in the driver,
and receives the records batch by batch. Some sinks are written by the tasks, in parts that are not visible until the
sink writer accepts them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.records.formats.format import Column
from potok.sinks.guarantee import Guarantee
from potok.sinks.spark_access import SparkAccess

Failures = dict[int, str]
"""The records that a sink rejects, by index, each with the reason: they become dead letters."""

NO_VALUE = "a null value means nothing without its key: pass with_key=True"


@dataclass(frozen=True, slots=True)
class Types:
    """The types of keys and values; None is dynamic."""

    key: pa.DataType | None
    value: pa.DataType | None


@dataclass(frozen=True, slots=True)
class Rows:
    """Records to deliver, as columns, in order."""

    key: Column
    value: Column
    timestamp: npt.NDArray[np.int64]
    headers: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.timestamp)

    @property
    def keys(self) -> list[Any]:
        return _pylist(self.key)

    @property
    def values(self) -> list[Any]:
        return _pylist(self.value)


def _pylist(column: Column) -> list[Any]:
    found: list[Any] = column if isinstance(column, list) else column.to_pylist()
    return found


@dataclass(frozen=True, slots=True)
class Prepared:
    """Keys and values in the format of a sink, one per record, and the rejected records."""

    key: Column
    value: Column
    failures: Failures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Opening:
    """The delivering step of a query, its epoch, the last committed batch, and Spark, if the query runs on it."""

    query: str
    step: str
    guarantee: Guarantee
    types: Types
    epoch: int
    committed: int
    spark: SparkAccess | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """One attempt of a batch. After a crash the batch is repeated with its number, in a later epoch."""

    epoch: int
    number: int


class SinkWriter(ABC):
    """An open sink, in the driver."""

    @abstractmethod
    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        """Deliver the records of one batch, and return once they are stored.

        Transient errors are retried for some time; then `DeliveryFailed` is raised.
        """

    @abstractmethod
    def close(self) -> None:
        """Release resources."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a batch that one task has written, not visible yet."""

    path: str
    rows: int
    bytes: int


class PartWriter(ABC):
    """An open sink whose records were written by the tasks."""

    @abstractmethod
    def accept(self, batch: Batch, parts: Sequence[Part]) -> None:
        """Make the parts of one batch visible."""

    @abstractmethod
    def close(self) -> None:
        """Release resources."""


class SinkSpec(ABC):
    """The destination. Subclasses are frozen and picklable; their repr contains no secrets."""

    __slots__ = ()

    verb: ClassVar[str]
    """The DSL method that creates it."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The destination, for display."""

    @abstractmethod
    def check(self, types: Types, guarantee: Guarantee) -> None:
        """Raise a `TopologyError` for what can never be delivered, before anything runs."""

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """In a task: convert records to the format of the sink writer."""
        return Prepared(rows.key, rows.value)

    @abstractmethod
    def open(self, opening: Opening) -> SinkWriter | PartWriter:
        """In the driver: open the sink."""


class LoggedTarget(SinkSpec):
    """A sink whose deliveries are first records of a topic, committed with the batch, and sent from there.

    A receiver that does not answer therefore delays neither the query nor other receivers. The runtime opens it.
    """

    __slots__ = ()

    def open(self, opening: Opening) -> SinkWriter | PartWriter:
        raise NotImplementedError("the runtime opens it with the log")


class PartTarget(SinkSpec):
    """A sink that is written by the tasks."""

    __slots__ = ()

    @abstractmethod
    def write(self, rows: Rows, query: str, step: str) -> Part:
        """In a task: write records that are not visible yet."""

    @abstractmethod
    def open(self, opening: Opening) -> PartWriter: ...
