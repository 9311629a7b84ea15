"""Tables whose rows do not stay forever, or whose versions stay for a while."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from potok.topology.nodes import TableSource, ToTable
from tests.oracle.canonical import canonical
from tests.oracle.records import Item
from tests.oracle.tables import Change, LatestRows, SetAside


class MortalRows(LatestRows):
    """Rows that are deleted when the watermark has passed the time of their last change, and their time to live."""

    def __init__(self, ttl_ms: int, by_event_time: bool) -> None:
        super().__init__(by_event_time)
        self.ttl_ms = ttl_ms
        self.last: dict[str, Item] = {}

    def take(self, item: Item) -> Change | None:
        change = super().take(item)
        if change is not None:
            self.last[canonical(item.key)] = item
        return change

    def close(self, stream_time_ms: int) -> list[Change]:
        over = [text for text, item in self.last.items() if item.at_ms + self.ttl_ms <= stream_time_ms]
        gone = []
        for text in over:
            item, (_, value) = self.last.pop(text), self.held.pop(text)
            at_ms = item.at_ms + self.ttl_ms
            reported = replace(item, at_ms=at_ms, stream_time_ms=max(at_ms, item.stream_time_ms))
            gone.append(Change(item.key, value, None, reported))
        return gone


class VersionedRows(LatestRows):
    """All versions of each row, by event time; what comes when its time is out of the history is late."""

    def __init__(self, history_ms: int) -> None:
        super().__init__(True)
        self.history_ms = history_ms
        self.versions: dict[str, dict[int, tuple[Any, Any]]] = {}

    def take(self, item: Item) -> Change | None:
        if item.key is not None and item.at_ms + self.history_ms <= item.stream_time_ms:
            raise SetAside("late")
        change = super().take(item)
        versions = self.versions.setdefault(canonical(item.key), {})
        found = versions.get(item.at_ms)
        if found is None or item.place >= found[0]:
            versions[item.at_ms] = item.place, item.value
        return change

    def as_of(self, text: str, at_ms: int) -> Any:
        earlier = [time for time in self.versions.get(text, {}) if time <= at_ms]
        return self.versions[text][max(earlier)][1] if earlier else None


def latest_rows(node: TableSource | ToTable, key_changed: bool) -> LatestRows:
    if node.lifetime.history_ms is not None:
        return VersionedRows(node.lifetime.history_ms)
    if node.lifetime.ttl_ms is None:
        return LatestRows(key_changed)
    if node.lifetime.by_processing_time:
        raise NotImplementedError("the oracle has no wall clock")
    return MortalRows(node.lifetime.ttl_ms, key_changed)
