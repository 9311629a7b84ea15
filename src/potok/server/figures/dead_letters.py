"""The latest unresolved dead letters of a query, a few per reason, and their number."""

from __future__ import annotations

from collections import deque
from typing import Any

from potok.dead_letters.dead_letters import DeadLetters
from potok.dead_letters.read import DeadLetter, Fate, read_dead_letter_ranges
from potok.log.broker import Broker

PER_REASON = 12
SHOWN_CHARS = 200
TAIL = 200
"""Maximum number of records read from a partition at a time: after a flood, the page shows only its end."""


class RecentDeadLetters:
    """Follows the dead letters. Each reason keeps its own latest, so that a flood of one hides no other."""

    def __init__(self, broker: Broker, query: str) -> None:
        self._broker = broker
        self._query = query
        self._box: DeadLetters | None = None
        self._read_to: dict[int, int] = {}
        self._by_reason: dict[str, deque[DeadLetter]] = {}

    def latest(self) -> list[dict[str, Any]]:
        """Return the unresolved ones, the newest first."""
        box = self._opened()
        if box is None:
            return []
        self._follow(box.topic)
        kept = [dead_letter for some in self._by_reason.values() for dead_letter in some]
        fates = zip(kept, box.fates(kept), strict=True)
        dead_letters = [dead_letter for dead_letter, fate in fates if fate is Fate.OPEN]
        dead_letters.sort(key=lambda dead_letter: (dead_letter.set_aside_at_ms, dead_letter.offset), reverse=True)
        return [_as_object(dead_letter) for dead_letter in dead_letters]

    def open(self) -> int:
        """Return the number of unresolved ones."""
        box = self._opened()
        return 0 if box is None else box.count()

    def _opened(self) -> DeadLetters | None:
        """Open the dead letters of a query once it has started; before that, their topic does not exist."""
        if self._box is None:
            box = DeadLetters(self._broker, self._query)
            self._box = box if self._broker.has_topic(box.topic) else None
        return self._box

    def _follow(self, topic: str) -> None:
        starts = self._broker.start_offsets(topic)
        for partition, end in self._broker.end_offsets(topic).items():
            start = max(self._read_to.get(partition, 0), starts.get(partition, 0), end - TAIL)
            if start < end:
                for dead_letter in read_dead_letter_ranges(self._broker, topic, partition, [(start, end)]):
                    self._by_reason.setdefault(dead_letter.reason, deque(maxlen=PER_REASON)).append(dead_letter)
                self._read_to[partition] = end


def _as_object(dead_letter: DeadLetter) -> dict[str, Any]:
    return {
        "at": dead_letter.set_aside_at_ms,
        "reason": dead_letter.reason,
        "step": dead_letter.step,
        "error": shown(dead_letter.error.encode()),
        "key": shown(dead_letter.key),
        "value": shown(dead_letter.value),
        "topic": dead_letter.topic,
        "partition": dead_letter.partition,
        "offset": dead_letter.offset,
        "replays": dead_letter.replays,
    }


def shown(data: bytes | None) -> str:
    """Render bytes for people: escape what is not text, and truncate long values."""
    if data is None:
        return ""
    text = data[: SHOWN_CHARS * 4].decode("utf-8", errors="backslashreplace")
    return text if len(text) <= SHOWN_CHARS and len(data) <= SHOWN_CHARS * 4 else text[: SHOWN_CHARS - 1] + "…"
