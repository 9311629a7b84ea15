"""The matches that a batch has found, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from potok.expressions.failures import RowFailures
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, Column, Ints
from potok.operators.core.operator import Task
from potok.operators.core.record_order import UNTIMED, WIDTH
from potok.operators.exchange.shards import key_column
from potok.operators.patterns.machine import Found, Machine
from potok.operators.patterns.runs import Link, Row, taken
from potok.topology.nodes import Match
from potok.topology.patterns.output import NO_VARIABLE, MatchedRows, MatchOutput

Item = tuple[tuple[int, ...], bytes, int, Found]
"""The order key, the key, and the number of a match."""


class Matches:
    """Collect matches, and return them in the order in which they were decided, then by key."""

    def __init__(
        self,
        node: Match,
        names: tuple[str, ...],
        row_type: pa.DataType | None,
        value_type: pa.DataType | None,
        task: Task,
    ) -> None:
        self._row_type, self._value_type, self._variables = row_type, value_type, node.variables
        self._output, self._task, self._shows_timeouts = node.output, task, node.shows_timeouts
        self._names = names
        self._held_ms = node.holds_back_ms
        self._items: tuple[list[Item], list[Item]] = ([], [])

    def add(self, key: bytes, machine: Machine, order: tuple[int, ...]) -> None:
        """Add the matches that a record has decided."""
        for found in machine.found:
            items = self._items[found.over and not self._shows_timeouts]
            items.append((order, key, len(items), found))
        machine.found.clear()

    def add_timed(self, key: bytes, machine: Machine) -> None:
        """Add the matches that the time has decided, before the records with this time."""
        for found in machine.found:
            items = self._items[found.over and not self._shows_timeouts]
            items.append(((found.known_at, UNTIMED, UNTIMED, 0), key, len(items), found))
        machine.found.clear()

    def chunks(self, key_type: pa.DataType | None) -> Iterator[tuple[bool, Chunk]]:
        """Yield the matches, and the partial matches whose time limit has passed."""
        for over, items in enumerate(self._items):
            if items:
                items.sort(key=lambda item: item[:3])
                yield bool(over), self._chunk(items, key_type)

    def _chunk(self, items: list[Item], key_type: pa.DataType | None) -> Chunk:
        found = [item[3] for item in items]
        times = np.array([one.time for one in found], np.int64)
        known = np.array([one.known_at for one in found], np.int64)
        if self._output is not None:
            return self._computed(self._output, items, times, known, key_type)
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

    def _computed(
        self, output: MatchOutput, items: list[Item], times: Ints, known: Ints, key_type: pa.DataType | None
    ) -> Chunk:
        """Return the output of the matches: any number of records for each."""
        rows: list[tuple[int, Row]] = []
        starts = [0]
        for _, _, _, found in items:
            rows += taken(found.link) or [(NO_VARIABLE, found.link.row)]
            starts.append(len(rows))
        failures: RowFailures = {}
        made = output(
            MatchedRows(
                pa.array([row.value for _, row in rows], self._row_type),
                np.array([variable for variable, _ in rows], np.int64),
                np.array(starts, np.int64),
                np.array([found.number for _, _, _, found in items], np.int64),
                np.array([not found.unmatched for _, _, _, found in items], np.bool_),
            ),
            failures,
        )
        self._task.failures.add(failures, lambda _: (NO_INPUT_PARTITION, 0))
        row_times = np.array([row.time for _, row in rows], np.int64)
        stamps = np.where(made.rows >= 0, row_times[np.maximum(made.rows, 0)], times[made.matches])
        return Chunk(
            key_column(pa.array([items[number][1] for number in made.matches.tolist()], pa.binary()), key_type),
            made.values,
            stamps,
            np.maximum(stamps, known[made.matches] - self._held_ms),
            np.full(len(stamps), NO_INPUT_PARTITION, np.int64),
            np.zeros(len(stamps), np.int64),
            order=np.array([items[number][0] for number in made.matches.tolist()], np.int64).reshape(-1, WIDTH),
        )

    def _value(self, link: Link) -> dict[str, list[Any]]:
        value: dict[str, list[Any]] = {name: [] for name in self._variables}
        for variable, row in taken(link):
            value[self._names[variable]].append(row.value)
        return value
