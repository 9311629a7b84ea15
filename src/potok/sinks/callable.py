"""Call a user function in the driver with the records of each batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.records.rows import rows_of
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Batch, Failures, Opening, Rows, SinkSpec, SinkWriter, Types


@dataclass(frozen=True, slots=True)
class SinkRecord:
    """A record as passed to a function of `to_callable`."""

    key: Any
    value: Any
    timestamp_ms: int
    headers: tuple[tuple[str, bytes], ...] = ()


class NotIdempotent(TopologyError):
    """Exactly-once was requested for a function that does not receive the batch number."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'"{name}" cannot be called exactly once: it does not receive the batch number, and after a crash '
            "a batch is repeated",
            hint="accept the batch number, lambda records, batch: ..., and replace the output of the same number; "
            'or pass guarantee="at_least_once" or "at_most_once"',
        )


@dataclass(frozen=True, slots=True)
class CallableTarget(SinkSpec):
    """A function of the records of a batch and, if it takes two arguments, of the batch number.

    It is called in the driver, so it may hold connections and files: it is not sent to the tasks.
    """

    verb: ClassVar[str] = "to_callable"

    function: Function | None

    @property
    def label(self) -> str:
        return "a function" if self.function is None else f"the function {self.function.name.split('<locals>.')[-1]}"

    def check(self, types: Types, guarantee: Guarantee) -> None:
        if guarantee is Guarantee.EXACTLY_ONCE and self.function is not None and self.function.arity < 2:
            raise NotIdempotent(self.function.name)

    def open(self, opening: Opening) -> SinkWriter:
        return CallableWriter(self, opening)

    def __reduce__(self) -> tuple[object, ...]:
        return CallableTarget, (None,)


class CallableWriter(SinkWriter):
    """Calls the function once for each batch with records."""

    def __init__(self, target: CallableTarget, opening: Opening) -> None:
        assert target.function is not None
        self._target, self._function, self._opening = target, target.function, opening

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        label = self._target.label
        return call_function(self._function, records_of(rows), len(rows), batch, self._opening, label)

    def close(self) -> None:
        """Do nothing: the function and its resources belong to the user."""


def call_function(function: Function, given: Any, count: int, batch: Batch, opening: Opening, label: str) -> Failures:
    """Call a user's function with a batch, and with its number if it takes that; return the records it rejects."""
    more = (batch.number,) if function.arity > 1 else ()
    try:
        return _failures(function(given, *more), count)
    except Exception as error:
        cause = _described(error)
        lost = opening.guarantee is Guarantee.AT_MOST_ONCE
        # These mean that a server is unreachable; any other error is a bug in the function.
        passing = isinstance(error, ConnectionError | TimeoutError)
        raise DeliveryFailed(opening.step, label, batch.number, cause, lost=lost, passing=passing) from error


def _described(error: Exception) -> str:
    """Describe an error of the user's function, whose own text may fail too."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - user code
        return f"{type(error).__name__}, whose text cannot be shown"


def records_of(rows: Rows) -> list[SinkRecord]:
    """Convert rows into the records that a function receives."""
    keys, values, times = rows_of(rows.key), rows_of(rows.value), rows.timestamp.tolist()
    if rows.headers is None:
        return list(map(SinkRecord, keys, values, times))
    return list(map(SinkRecord, keys, values, times, map(_headers, _plain(rows.headers))))


def _plain(headers: pa.Array) -> list[Any]:
    found: list[Any] = headers.to_pylist()
    return found


def _headers(found: list[Mapping[str, Any]] | None) -> tuple[tuple[str, bytes], ...]:
    return tuple((header["name"], header["value"]) for header in found or ())


def _failures(returned: object, count: int) -> Failures:
    """Return the records that a function rejects, by index.

    Other results, such as the number returned by a lambda that ends in `file.write(...)`, mean none.
    """
    if returned is None or isinstance(returned, int | float | str | bytes):
        return {}
    if not isinstance(returned, Mapping):
        raise TypeError(f"it returned {returned!r}; return nothing, or {{index: reason}} for rejected records")
    strange = [index for index in returned if type(index) is not int or not 0 <= index < count]
    if strange:
        raise TypeError(f"it returned the index {strange[0]!r}, and there are {count} records")
    return {index: str(reason) for index, reason in returned.items()}
