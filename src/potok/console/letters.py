"""The latest dead letters of a query, a few of every reason."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from potok.log.broker import Broker

PER_REASON = 12
SHOWN_CHARS = 200
TAIL = 200
"""Only so many records of a partition are read at a time: after a flood the page shows its end, not all of it."""


class RecentLetters:
    """Follows the dead-letter topic. Each reason keeps its own latest, so that a flood of one hides no other."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._broker = broker
        self._topic = topic
        self._read_to: dict[int, int] = {}
        self._by_reason: dict[str, deque[dict[str, Any]]] = {}

    def latest(self) -> list[dict[str, Any]]:
        """What is known now, the newest first."""
        if self._broker.has_topic(self._topic):
            starts = self._broker.start_offsets(self._topic)
            for partition, end in self._broker.end_offsets(self._topic).items():
                start = max(self._read_to.get(partition, 0), starts.get(partition, 0), end - TAIL)
                self._read(partition, start, end)
        letters = [letter for kept in self._by_reason.values() for letter in kept]
        return sorted(letters, key=lambda letter: (letter["at"], letter["offset"]), reverse=True)

    def _read(self, partition: int, start: int, end: int) -> None:
        if start >= end:
            return
        for batch in self._broker.read(self._topic, partition, start, end):
            for row in batch.to_pylist():
                letter = _letter(row)
                kept = self._by_reason.setdefault(letter["reason"], deque(maxlen=PER_REASON))
                kept.append(letter)
        self._read_to[partition] = end


def _letter(row: Mapping[str, Any]) -> dict[str, Any]:
    headers = {header["name"]: shown(header["value"]) for header in row["headers"] or ()}
    return {
        "at": row["ingested"],
        "reason": headers.get("potok.reason", ""),
        "step": headers.get("potok.step", ""),
        "error": headers.get("potok.error", ""),
        "key": shown(row["key"]),
        "value": shown(row["value"]),
        "topic": headers.get("potok.topic", ""),
        "partition": _number(headers.get("potok.partition", "")),
        "offset": _number(headers.get("potok.offset", "")),
    }


def shown(data: bytes | None) -> str:
    """Bytes as text that a person can look at; what is no text is escaped, what is long is cut."""
    if data is None:
        return ""
    text = data[: SHOWN_CHARS * 4].decode("utf-8", errors="backslashreplace")
    return text if len(text) <= SHOWN_CHARS and len(data) <= SHOWN_CHARS * 4 else text[: SHOWN_CHARS - 1] + "…"


def _number(text: str) -> int:
    return int(text) if text.lstrip("-").isdigit() else -1
