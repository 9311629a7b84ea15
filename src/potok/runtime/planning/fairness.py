"""How much of a batch each member gets, so that one that is far behind does not hold up the others."""

from __future__ import annotations

from collections.abc import Mapping

FIRST = 10_000
"""Of a member that nobody has timed yet: the first batch should not be felt by the others."""

MOST_SHARE = 0.5
"""The part of the batch that one member may have among others."""

LEAST = 1_000
"""So many records every member may have, unless fewer fill a batch."""


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
        limits[name] = max(min(LEAST, paces[name]), round(share * paces[name]))
    return limits
