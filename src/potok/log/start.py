"""Where a new reader starts: consumers, queues and queries accept the same values for `start`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from potok.clock import epoch_ms
from potok.errors import LogError
from potok.log.broker import Broker

Start = Literal["earliest", "latest"] | datetime | Mapping[str, Mapping[int, int]]
"""The first record, the next record, the first record at or after an instant, or an offset for each partition of each
topic; partitions that are not named start at their first record."""


class NotAStart(LogError):
    """A value that does not name a start position."""

    def __init__(self, start: object) -> None:
        super().__init__(
            f"a reader cannot start at {start!r}",
            hint='write start="earliest", start="latest", a datetime, or offsets such as {"orders": {0: 17}}',
        )


def start_offsets(broker: Broker, topics: Sequence[str], start: Start) -> Mapping[str, Mapping[int, int]]:
    """Resolve a start to the current offsets of the log; partitions that are missing start at their first record."""
    if start == "earliest":
        return {}
    if start == "latest":
        return broker.end_offsets_of(topics) if topics else {}
    if isinstance(start, datetime):
        at_ms = epoch_ms(start)
        return {
            topic: {part: broker.offset_at(topic, part, at_ms) for part in range(broker.partitions(topic))}
            for topic in topics
        }
    if isinstance(start, Mapping):
        return start
    raise NotAStart(start)
