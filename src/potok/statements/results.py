"""Results of statements: a message, rows, or a push query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from potok.sql.analysis.select import Analysis
from potok.sql.expressions.typed import ColumnRef

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result; `is_key` marks key columns."""

    name: str
    type: pa.DataType
    is_key: bool = False


def result_columns(analysis: Analysis, keys: Set[str]) -> tuple[ResultColumn, ...]:
    """Return the columns of a query; `keys` are the slots of those that are its key."""
    return tuple(
        ResultColumn(item.name, typed.type, isinstance(typed, ColumnRef) and typed.column in keys)
        for item, typed in zip(analysis.items, analysis.projected, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a statement that changed something."""

    message: str
    command_id: str = ""
    """`stream/ORDERS/create`, as clients of ksqlDB expect."""
    sequence: int = -1
    """The sequence number of the statement in the command log, or -1 if it has none."""
    query_id: str = ""
    warnings: tuple[str, ...] = ()
    position: str = ""
    """The position after the inserted row."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A finite result. `kind` is `query` for a pull query, else `streams`, `tables`, `topics`, `queries`,
    `functions`, `types`, `variables`, `properties`, `connectors`, `connector`, `description`, `function`,
    `explanation`."""

    kind: str
    columns: tuple[ResultColumn, ...]
    rows: tuple[Row, ...]
    details: tuple[tuple[str, Any], ...] = ()
    """Details of DESCRIBE EXTENDED and EXPLAIN: pairs of heading and text or rows."""
    query_id: str = ""
    warnings: tuple[str, ...] = field(default=())

    def as_dicts(self) -> list[dict[str, Any]]:
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


class Push(ABC):
    """The rows of a push query, until it reaches its LIMIT or is closed. One thread reads, any thread may close it."""

    columns: tuple[ResultColumn, ...]
    query_id: str
    left_out: int = 0
    """How many records could not be decoded or processed, known after `close`; 0 if they are not counted."""

    @abstractmethod
    def next(self, timeout_s: float | None = None) -> Sequence[Row] | None:
        """Return the next rows, at least one; an empty list after the timeout; None at the end."""

    @abstractmethod
    def close(self) -> None:
        """Stop the query. Calling it again has no effect."""

    def notify(self, wake: Callable[[], None]) -> bool:
        """Call `wake`, from any thread, when `next` may have rows or has ended. Return whether that is supported."""
        return False

    def __iter__(self) -> Iterator[Row]:
        while (rows := self.next()) is not None:
            yield from rows

    def __enter__(self) -> Push:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Result = Done | Rows | Push


@dataclass(frozen=True, slots=True)
class Executed:
    """A statement of a script and its result."""

    text: str
    result: Result
