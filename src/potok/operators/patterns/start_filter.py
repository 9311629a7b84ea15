"""Find the records whose match fails before the batch is over, as columns: nothing needs to be started for them.

The threads of one start are a set of states, so they have one number, and a table says which set follows with which
record. All starts of all keys move through that table side by side, one record at a time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from potok.operators.core.chunk import Ints
from potok.topology.patterns.program import ACCEPT, Guard, Program

FARTHEST = 16
"""How many records after a start are looked at."""
MOST_CLASSES = 64
"""With more combinations of conditions in a batch, nothing is filtered."""

Mask = npt.NDArray[np.bool_]

_DEAD, _MATCHED = 0, 1


class StartFilter:
    """For conditions on the record alone. A record is kept if its match is complete, still open at the end of the
    batch or over in time; or if another match, which would be emitted after its own, is complete before it fails."""

    def __init__(self, program: Program, within_ms: int | None, most_threads: int | None) -> None:
        self._program, self._within_ms = program, within_ms
        self._farthest = FARTHEST if most_threads is None else min(FARTHEST, _fewest_steps(program, most_threads))
        self._sets: dict[frozenset[int], int] = {frozenset(): _DEAD, frozenset((ACCEPT,)): _MATCHED}
        self._members: list[frozenset[int]] = [frozenset(), frozenset((ACCEPT,))]
        self._next: dict[tuple[int, int], int] = {}

    def hopeless(self, starts: Mask, bits: Ints, keys: Ints, times: Ints) -> Mask:
        """Return the starts that need not be started; records are grouped by key, and in order."""
        found = np.zeros(len(bits), np.bool_)
        combinations, classes = np.unique(bits, return_inverse=True)
        rows = np.flatnonzero(starts)
        if len(combinations) > MOST_CLASSES or not len(rows):
            return found
        started = [self._after(frozenset(self._program.begin), int(one), first=True) for one in combinations]
        sets = np.array(started, np.int64)[classes[rows]]
        matched = np.zeros(len(bits), np.int64)
        matched[rows[sets == _MATCHED]] = 1
        died = np.full(len(bits), -1, np.int64)
        alive = sets > _MATCHED
        died[rows[sets == _DEAD]] = rows[sets == _DEAD]
        rows, sets = rows[alive], sets[alive]
        for distance in range(1, self._farthest + 1):
            at = rows + distance
            inside = at < len(bits)
            rows, sets, at = rows[inside], sets[inside], at[inside]
            inside = keys[at] == keys[rows]
            if self._within_ms is not None:
                inside &= times[at] - times[rows] < self._within_ms
            rows, sets, at = rows[inside], sets[inside], at[inside]
            if not len(rows):
                break
            sets = self._advanced(sets, classes[at], combinations)
            matched[at[sets == _MATCHED]] = 1
            dead = sets == _DEAD
            died[rows[dead]] = at[dead]
            alive = sets > _MATCHED
            rows, sets = rows[alive], sets[alive]
        before = np.concatenate([[0], np.cumsum(matched)])
        rows = np.flatnonzero(died >= 0)
        found[rows] = before[died[rows]] == before[np.minimum(rows + 1, died[rows])]
        return found

    def _advanced(self, sets: Ints, classes: Ints, combinations: Ints) -> Ints:
        pairs, which = np.unique(sets * MOST_CLASSES + classes, return_inverse=True)
        after = [
            self._after_known(pair // MOST_CLASSES, int(combinations[pair % MOST_CLASSES])) for pair in pairs.tolist()
        ]
        return np.array(after, np.int64)[which]

    def _after_known(self, number: int, bits: int) -> int:
        key = number, bits
        if key not in self._next:
            self._next[key] = self._after(self._members[number], bits)
        return self._next[key]

    def _after(self, states: frozenset[int], bits: int, *, first: bool = False) -> int:
        """Return the number of the states after a record that satisfies these conditions."""
        going: set[int] = set()
        for number in states:
            state = self._program.states[number]
            if any(_stops(guard, bits) for guard in state.guards):
                continue
            if state.variable is None:
                if state.passes:
                    return _MATCHED
                going.add(number if state.skipped is None else state.skipped)
                continue
            fits = bool(bits >> state.variable & 1)
            if fits and not any(bits >> other & 1 for other in state.unless):
                going.update(state.after)
            if not first and state.skipped is not None and (state.forks or not fits):
                going.add(state.skipped)
        return _MATCHED if ACCEPT in going else self._number(frozenset(going))

    def _number(self, states: frozenset[int]) -> int:
        if states not in self._sets:
            self._sets[states] = len(self._members)
            self._members.append(states)
        return self._sets[states]


def _fewest_steps(program: Program, threads: int) -> int:
    """Return the number of records after which a match can have so many threads, if none are merged."""
    widest = max(len(state.after) + 1 for state in program.states)
    return int(math.log(threads, max(widest, len(program.begin), 2)))


def _stops(guard: Guard, bits: int) -> bool:
    return bool(bits >> guard.variable & 1) and not any(bits >> other & 1 for other in guard.unless)


def can_filter(program: Program, iterative: Any, *, unmatched: bool) -> bool:
    """Whether the outcome of a start depends on the conditions of records alone."""
    if iterative or unmatched or program.gapped:
        return False
    return ACCEPT not in program.begin and program.begin == program.begin_first
