"""Aggregate the records of one window from its start, in the order of time or of their offsets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from potok.operators.aggregates.accumulators import Accumulator, Rank, accumulator_of
from potok.operators.cells.cell_codec import decode_row, encode_row
from potok.operators.core.call import describe_error, must_fit, plain
from potok.operators.core.function_usage import only_looks_up
from potok.operators.windows.window_assigners import Event
from potok.records.rows import converter_of
from potok.records.value import wrap
from potok.state.codec import dump_state, load_state
from potok.topology.nodes import Aggregation

Failures = dict[Event, str]
"""The records that cannot be aggregated, and why."""


def _offset(event: Event) -> tuple[int, str, int]:
    topic, partition, offset = event.add
    return offset, topic, partition


class FrameFold:
    """The aggregate of a window as the bytes of its cell: (greatest event time, stored accumulator).

    With a type, a result that does not fit it is an error of the record that led to it.
    """

    def __init__(
        self, aggregation: Aggregation, type_: pa.DataType | None, value_type: pa.DataType | None = None
    ) -> None:
        self._accumulator: Accumulator = accumulator_of(aggregation, value_type)
        # A selector has replaced the values that other kinds of aggregates take.
        of_user = aggregation.kind in ("fold", "reduce")
        self._as_seen = converter_of(value_type) if of_user else wrap
        self._type = type_
        self.by_offset = aggregation.by_offset
        # Records are aggregated again when others arrive: changes that a function made to them must not be visible.
        function = aggregation.function if aggregation.kind in ("fold", "reduce") else None
        self._copies = function is not None and not only_looks_up(function.callable)

    def fold(self, key: Any, events: list[Event]) -> tuple[bytes, Failures]:
        """Return the cell, and the records that failed: without them, the others may form other windows."""
        if self.by_offset:
            events = sorted(events, key=_offset)
        add = self._accumulator.add
        try:
            state = self._accumulator.start()
            for value, rank in zip(self._values(events), self._ranks(events), strict=True):
                state = add(state, key, value, rank)
            return self._data(max(event.time for event in events), state), {}
        except Exception:  # noqa: BLE001 - the user's function may raise anything; it is asked again, one by one
            return self._carefully(key, events)

    def _carefully(self, key: Any, events: list[Event]) -> tuple[bytes, Failures]:
        """Add each record to the state after the last one that succeeded."""
        failures: Failures = {}
        data: bytes | None = None
        values, ranks = self._values(events), self._ranks(events)
        for event, value, rank in zip(events, values, ranks, strict=True):
            try:
                data = self._added(data, key, event.time, value, rank)
            except Exception as error:  # noqa: BLE001
                failures[event] = describe_error(error)
        return data or b"", failures

    def add(self, data: bytes | None, key: Any, event: Event) -> bytes:
        """Return the cell with another record, which is the last by time; raise the errors of the user's function."""
        return self._added(data, key, event.time, self._values([event])[0], self._ranks([event])[0])

    def _added(self, data: bytes | None, key: Any, time: int, value: Any, rank: Rank | None) -> bytes:
        before, state = (time, self._accumulator.start()) if data is None else decode_row(data)
        return self._data(max(before, time), self._accumulator.add(state, key, value, rank))

    def _values(self, events: list[Event]) -> list[Any]:
        values = [event.value for event in events]
        if self._copies:
            values = load_state(dump_state(values))
        return [self._as_seen(value) for value in values] if self._accumulator.wrapped else values

    def _ranks(self, events: list[Event]) -> list[Rank | None]:
        if self._accumulator.ranked:
            return [(event.time, event.add) for event in events]
        return [None] * len(events)

    def _data(self, time: int, state: Any) -> bytes:
        if self._type is not None:
            must_fit(self._accumulator.result(state), self._type)
        return encode_row(time, self._accumulator.stored(state))

    def result(self, data: bytes | None) -> Any:
        """Return what the table shows of a cell."""
        return None if data is None else plain(self._accumulator.result(decode_row(data)[1]))
