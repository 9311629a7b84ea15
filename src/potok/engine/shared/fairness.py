"""How much of a batch each member gets, so that one that is far behind does not hold up the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from potok.engine.pace import LEAST, Pace

FIRST = 10_000
"""Of a member that nobody has timed yet: the first batch should not be felt by the others."""

MOST_SHARE = 0.5
"""The part of the batch that one member may have among others."""

_GROWTH = 4.0


@dataclass(slots=True)
class SharedPace(Pace):
    """How many records of a member would fill a batch if it were alone, told by the time that its own tasks took.

    A small batch says little, because most of its time goes into beginning and ending it: it only ever raises the
    limit.
    """

    limit: int = FIRST

    def learn(self, records: int, batch_ms: int) -> int:
        if records:
            fits = min(records * self.target_ms / max(batch_ms, 1), self.limit * _GROWTH)
            self.limit = int(fits if records >= LEAST else max(self.limit, fits))
        self.limit = min(max(LEAST, self.limit), self.most)
        return self.limit


def fair_limits(waiting: Mapping[str, int], paces: Mapping[str, int], members: int) -> dict[str, int]:
    """How many records each may have: those who need little get it, and the others share what is left.

    Args:
        waiting: The records that are there for each, of those for whom there are any.
        paces: How many records of each fill a batch.
        members: How many there are, also without records.
    """
    left, most = 1.0, 1.0 if members == 1 else MOST_SHARE
    limits: dict[str, int] = {}
    by_need = sorted(waiting, key=lambda name: waiting[name] / paces[name])
    for done, name in enumerate(by_need):
        share = min(waiting[name] / paces[name], left / (len(by_need) - done), most)
        left -= share
        limits[name] = max(LEAST, round(share * paces[name]))
    return limits
