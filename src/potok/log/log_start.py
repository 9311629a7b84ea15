"""Where the log begins for a reader, and what becomes of one whose next records are no longer there."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from potok.errors import LogError
from potok.log.broker import Broker
from potok.log.errors import FellBehind
from potok.log.groups.membership import Place

OnLost = Literal["stop", "jump", "archive"]

_EVERY_SECONDS = 1.0

_logger = logging.getLogger("potok.log")


class Floor:
    """Looks, now and then, whether the log was cut off in front of a reader. A gap is never passed in silence.

    Args:
        reader: What an error calls the one who reads.
        on_lost: "stop" raises `FellBehind`, "jump" warns and goes on at the log's first record, "archive" reads what
            retention has moved to the topic's archive, and stops where that does not reach back far enough.
    """

    def __init__(self, broker: Broker, reader: str, on_lost: OnLost) -> None:
        if on_lost not in get_args(OnLost):
            raise LogError(f'on_lost cannot be "{on_lost}"', hint='use "stop", "jump" or "archive"')
        self._broker = broker
        self._reader = reader
        self._on_lost = on_lost
        self._looked_at = 0.0

    def first_offsets(self, topic: str) -> dict[int, int]:
        """From where on this reader reads a topic from the beginning."""
        if self._on_lost == "archive":
            return self._broker.earliest_offsets(topic)
        return self._broker.start_offsets(topic)

    def look_now(self) -> None:
        """The next `raised` looks, however short a time ago it looked last."""
        self._looked_at = 0.0

    def is_due(self) -> bool:
        return time.monotonic() >= self._looked_at + _EVERY_SECONDS

    def raised(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """The positions that must move because the log begins behind them, with where they go on."""
        if not self.is_due():
            return {}
        moved = {}
        for topic in _topics(positions):
            firsts = self.first_offsets(topic)
            for place, position in positions.items():
                if place[0] == topic and position < firsts.get(place[1], 0):
                    moved[place] = self._lost(place, position, firsts[place[1]])
        self._looked_at = time.monotonic()
        return moved

    def _lost(self, place: Place, position: int, first: int) -> int:
        topic, partition = place
        if self._on_lost != "jump":
            earliest = self._broker.earliest_offsets(topic).get(partition, first)
            raise FellBehind(self._reader, topic, partition, position, first, earliest)
        _logger.warning(
            '%s fell behind and goes on at offset %d of "%s" partition %d: %d records were deleted before it read them',
            self._reader,
            first,
            topic,
            partition,
            first - position,
        )
        return first


def _topics(positions: Iterable[Place]) -> set[str]:
    return {topic for topic, _ in positions}
