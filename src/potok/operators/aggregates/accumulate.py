"""Add the records of a batch to the states of their cells, so that a record that fails has no effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from potok.operators.aggregates.accumulators import Accumulator, Rank
from potok.operators.core.call import Errors, describe_error
from potok.state.codec import dump_state, load_state

UNTOUCHED: Any = object()
"""The state of a cell that does not exist, or that no record of the batch has reached."""


def stored_accumulator(data: bytes | None) -> Any:
    """Return the accumulator stored in a cell."""
    return UNTOUCHED if data is None else load_state(data)[1]


class Folding:
    """Record number r belongs to the cell number ids[r], which held before[ids[r]]."""

    def __init__(
        self,
        accumulator: Accumulator,
        ids: list[int],
        keys: list[Any],
        values: list[Any],
        ranks: Sequence[Rank | None],
        before: Sequence[bytes | None],
        *,
        each_record: bool = False,
        check: Callable[[Any], None] | None = None,
    ) -> None:
        self._accumulator, self._ids, self._before = accumulator, ids, before
        self._keys, self._values, self._ranks = keys, values, ranks
        self._errors: Errors = {}
        self._each_record, self._check = each_record, check
        self._good: dict[int, list[int]] = {}
        self._saved: dict[int, bytes] = {}
        self.steps: list[tuple[int, bytes]] = []
        """The number of each record that succeeded and, if requested, the stored accumulator after it."""

    def run(self, states: list[Any]) -> Errors:
        """Change the states in place; those that no record reached in the end are UNTOUCHED."""
        done = 0
        if not self._each_record and self._start(states):
            done = self._accumulator.add_all(states, self._ids, self._keys, self._values, self._ranks)
            if done == len(self._ids):
                return self._errors
            if self._accumulator.mutable:
                for row in range(done):
                    self._good.setdefault(self._ids[row], []).append(row)
                states[self._ids[done]] = self._restored(self._ids[done])
        self._carefully(done, states)
        reached = {i for row, i in enumerate(self._ids) if row not in self._errors}
        for i in range(len(states)):
            if i not in reached:
                states[i] = UNTOUCHED
        return self._errors

    def _start(self, states: list[Any]) -> bool:
        """Give each new cell its initial state; return whether the initializer succeeded."""
        start = self._accumulator.start
        try:
            states[:] = [start() if state is UNTOUCHED else state for state in states]
        except Exception:  # noqa: BLE001 - the user's initializer may raise anything
            return False
        return True

    def _carefully(self, first: int, states: list[Any]) -> None:
        """Add the records from number `first` on, one by one."""
        accumulator = self._accumulator
        for row in range(first, len(self._ids)):
            i = self._ids[row]
            try:
                made = self._add(states[i], row)
                if self._each_record:
                    if self._check is not None:
                        self._check(made)
                    self.steps.append((row, dump_state(accumulator.stored(made))))
                states[i] = made
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                self._errors[row] = describe_error(error)
                if accumulator.mutable:
                    states[i] = self._restored(i)
            else:
                if accumulator.mutable:
                    self._good.setdefault(i, []).append(row)

    def _add(self, state: Any, row: int) -> Any:
        accumulator = self._accumulator
        started = accumulator.start() if state is UNTOUCHED else state
        return accumulator.add(started, self._keys[self._ids[row]], self._values[row], self._ranks[row])

    def _restored(self, i: int) -> Any:
        """Return the state of a cell without the record that failed, which may have changed it in place.

        The records that succeeded since the last failure in the cell are added again to the state saved then, so each
        record is added again at most once, however many others fail.
        """
        rows = self._good.pop(i, [])
        saved = self._saved.get(i, self._before[i])
        while True:
            state, row = stored_accumulator(saved), -1
            try:
                for row in rows:
                    state = self._add(state, row)
                break
            except Exception as error:  # noqa: BLE001 - a function that depends on more than its arguments
                self._errors[row] = describe_error(error)
                rows = [good for good in rows if good != row]
        if rows:
            try:
                self._saved[i] = dump_state((0, self._accumulator.stored(state)))
            except Exception:  # noqa: BLE001 - not data, so it can only be made again; whoever writes it will refuse it
                self._good[i] = rows
        return state
