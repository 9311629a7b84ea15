"""The matches that a batch has found, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, Column
from potok.operators.core.record_order import UNTIMED
from potok.operators.exchange.shards import key_column
from potok.operators.patterns.machine import Found, Machine
from potok.operators.patterns.runs import Link, taken
from potok.topology.nodes import Match

Item = tuple[tuple[int, ...], bytes, int, Found]
"""The order key, the key, and the number of a match."""


class Matches:
    """Collect matches, and return them in the order in which they were decided, then by key."""

    def __init__(self, node: Match, names: tuple[str, ...], value_type: pa.DataType | None) -> None:
        self._value_type, self._variables = value_type, node.variables
        self._names = names
        self._held_ms = node.holds_back_ms
        self._items: tuple[list[Item], list[Item]] = ([], [])

    def add(self, key: bytes, machine: Machine, order: tuple[int, ...]) -> None:
        """Add what a record has decided."""
        for found in machine.found:
            items = self._items[found.over]
            items.append((order, key, len(items), found))
        machine.found.clear()

    def add_timed(self, key: bytes, machine: Machine) -> None:
        """Add what the time has decided: before the records with this time."""
        for found in machine.found:
            items = self._items[found.over]
            items.append(((found.known_at, UNTIMED, UNTIMED, 0), key, len(items), found))
        machine.found.clear()

    def chunks(self, key_type: pa.DataType | None) -> Iterator[tuple[bool, Chunk]]:
        """Yield the matches, and what had matched when its time was over."""
        for over, items in enumerate(self._items):
            if items:
                items.sort(key=lambda item: item[:3])
                yield bool(over), self._chunk(items, key_type)

    def _chunk(self, items: list[Item], key_type: pa.DataType | None) -> Chunk:
        found = [item[3] for item in items]
        times = np.array([one.time for one in found], np.int64)
        known = np.array([one.known_at for one in found], np.int64)
        values: Column = [self._value(one.link) for one in found]
        return Chunk(
            key_column(pa.array([item[1] for item in items], pa.binary()), key_type),
            values if self._value_type is None else pa.array(values, self._value_type),
            times,
            np.maximum(times, known - self._held_ms),
            np.full(len(items), NO_INPUT_PARTITION, np.int64),
            np.zeros(len(items), np.int64),
            order=np.array([item[0] for item in items], np.int64),
        )

    def _value(self, link: Link) -> dict[str, list[Any]]:
        value: dict[str, list[Any]] = {name: [] for name in self._variables}
        for variable, row in taken(link):
            value[self._names[variable]].append(row.value)
        return value
