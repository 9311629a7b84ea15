"""The log start offset of a reader, and what happens to one whose next records were deleted."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from potok.errors import LogError
from potok.log.broker import Broker
from potok.log.consumer_groups import PartitionId
from potok.log.errors import FellBehindError

OnLost = Literal["stop", "jump", "archive"]

_EVERY_SECONDS = 1.0

_logger = logging.getLogger("potok.log")


class LogStart:
    """Checks at intervals whether records in front of a reader were deleted. A gap is never skipped silently.

    Args:
        reader: The name of the reader in errors.
        on_lost: "stop" raises `FellBehindError`, "jump" warns and continues at the log's first record, "archive" reads
            what retention has moved to the topic's archive, and stops if the archive does not reach back far enough.
    """

    def __init__(self, broker: Broker, reader: str, on_lost: OnLost) -> None:
        if on_lost not in get_args(OnLost):
            raise LogError(f'on_lost cannot be "{on_lost}"', hint='use "stop", "jump" or "archive"')
        self._broker = broker
        self._reader = reader
        self._on_lost = on_lost
        self._looked_at = 0.0

    def first_offsets(self, topic: str) -> dict[int, int]:
        """Return the offsets at which this reader starts a topic from the beginning."""
        if self._on_lost == "archive":
            return self._broker.earliest_offsets(topic)
        return self._broker.start_offsets(topic)

    def check_next(self) -> None:
        """Make the next `raised` check, whenever the last check was."""
        self._looked_at = 0.0

    def is_due(self) -> bool:
        return time.monotonic() >= self._looked_at + _EVERY_SECONDS

    def raised(self, positions: Mapping[PartitionId, int]) -> dict[PartitionId, int]:
        """Return the positions that must move because the log starts after them, with their new offsets."""
        if not self.is_due():
            return {}
        moved = {}
        for topic in _topics(positions):
            firsts = self.first_offsets(topic)
            for topic_partition, position in positions.items():
                if topic_partition[0] == topic and position < firsts.get(topic_partition[1], 0):
                    moved[topic_partition] = self._lost(topic_partition, position, firsts[topic_partition[1]])
        self._looked_at = time.monotonic()
        return moved

    def _lost(self, topic_partition: PartitionId, position: int, first: int) -> int:
        topic, partition = topic_partition
        if self._on_lost != "jump":
            earliest = self._broker.earliest_offsets(topic).get(partition, first)
            raise FellBehindError(self._reader, topic, partition, position, first, earliest)
        _logger.warning(
            '%s fell behind and continues at offset %d of "%s" partition %d: '
            "%d records were deleted before it read them",
            self._reader,
            first,
            topic,
            partition,
            first - position,
        )
        return first


def _topics(positions: Iterable[PartitionId]) -> set[str]:
    return {topic for topic, _ in positions}
