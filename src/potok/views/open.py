"""Opening the tables of a query from anywhere."""

from __future__ import annotations

from pathlib import Path

from potok.log.open import open_broker
from potok.views.tables import Tables


def open_tables(broker: str | Path, query: str) -> Tables:
    """The tables of a query by the directory of its log, whether it runs or not.

    >>> tables = open_tables("file:./data", "stream-processor")
    >>> tables["order_counts"].get("user_001")
    """
    return Tables(open_broker(broker), query)
