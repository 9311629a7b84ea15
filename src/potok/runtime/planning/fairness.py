"""Divide a batch between queries, so that one that is far behind does not delay the others."""

from __future__ import annotations

from collections.abc import Mapping

FIRST = 10_000
"""The limit of a query without measurements: its first batch should not delay the others."""

MOST_SHARE = 0.5
"""The largest share of a batch for one query among others."""

LEAST = 1_000
"""Every query may have this many records, unless fewer fill a batch."""


def fair_limits(waiting: Mapping[str, int], paces: Mapping[str, int], queries: int) -> dict[str, int]:
    """Return how many records each query may read: those with few get all of them, the others share the rest.

    Args:
        waiting: The unread records of each query that has any.
        paces: How many records of each query fill a batch.
        queries: The number of queries, including those without records.
    """
    left, most = 1.0, 1.0 if queries == 1 else MOST_SHARE
    limits: dict[str, int] = {}
    by_need = sorted(waiting, key=lambda name: waiting[name] / paces[name])
    for done, name in enumerate(by_need):
        share = min(waiting[name] / paces[name], left / (len(by_need) - done), most)
        left -= share
        limits[name] = max(min(LEAST, paces[name]), round(share * paces[name]))
    return limits
