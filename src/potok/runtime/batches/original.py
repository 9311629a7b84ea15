"""Read records as stored in the log."""

from __future__ import annotations

from collections.abc import Sequence

from potok.log.broker import Broker
from potok.log.read_positions import read_positions
from potok.operators.core.dead_letters import Original


def originals(broker: Broker, topic: str, partition: int, offsets: Sequence[int]) -> dict[int, Original]:
    """Return the records at some offsets; one that has expired from the log while it waited is left out."""
    found: dict[int, Original] = {}
    for batch in read_positions(broker, topic, partition, offsets):
        columns = (batch.column(name).to_pylist() for name in ("offset", "key", "value", "headers"))
        found |= {offset: Original(*rest) for offset, *rest in zip(*columns, strict=True)}
    return found
