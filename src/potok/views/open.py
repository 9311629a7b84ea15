"""Opening the tables of a query from anywhere."""

from __future__ import annotations

from pathlib import Path

from potok.log.open import NoLogThere, log_exists, open_broker
from potok.views.tables import Tables


def open_tables(broker: str | Path, query: str) -> Tables:
    """The tables of a query by the directory of its log, whether it runs or not.

    >>> tables = open_tables("file:./data", "stream-processor")
    >>> tables["order_counts"].get("user_001")
    """
    if not log_exists(broker):
        raise NoLogThere(broker)
    return Tables(open_broker(broker), query)
