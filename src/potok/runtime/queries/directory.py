"""The local directory of a query."""

from __future__ import annotations

from pathlib import Path

from potok.log.broker import Broker
from potok.snapshots.state_location import cells_of


def query_directory(broker: Broker, query: str) -> Path:
    return broker.directory / "queries" / cells_of(broker, query)
