"""Results that wait for their window to close."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from potok.topology.nodes import Session, Sliding, Suppress, Window
from tests.oracle.canonical import canonical
from tests.oracle.tables import Change


class HeldRows:
    """The last change of each row, until the watermark says that its window is over."""

    def __init__(self, node: Suppress, window: Window) -> None:
        if node.every_ms is not None:
            raise NotImplementedError("how often a row changes is outside the promise")
        self.window = window
        self.held: dict[str, Change] = {}

    def take(self, change: Change) -> list[Change]:
        """What goes on at once: nothing, unless the row is dropped, with what it held before that."""
        held = self.held.pop(canonical(change.key), None)
        if change.dropped:
            return [change] if held is None else [self.final(held), change]
        if change.after is not None:
            self.held[canonical(change.key)] = change
        return []

    def final(self, change: Change) -> Change:
        """Not late for anything: steps behind this one wait for it."""
        return replace(change, before=None, item=replace(change.item, stream_time_ms=change.item.at_ms))

    def close(self, stream_time_ms: int) -> list[Change]:
        """What the watermark lets through, in the order of closing."""
        due = sorted((self.closes(change.key), text) for text, change in self.held.items())
        return [self.final(self.held.pop(text)) for at_ms, text in due if at_ms <= stream_time_ms]

    def closes(self, key: Any) -> int:
        """Past this reading no record that is accepted can reach the window."""
        window, start_ms, end_ms = self.window, int(key["start"]), int(key["end"])
        if isinstance(window, Session):
            return (start_ms - 1 if window.from_first else end_ms) + 2 * window.gap_ms + window.grace_ms + 1
        return end_ms + window.grace_ms + (1 if isinstance(window, Sliding) else 0)


def window_of(node: Any) -> Window:
    """The window of the table that a step stands on."""
    while not isinstance(getattr(node, "window", None), Window):
        node = node.upstream
    window = node.window
    assert isinstance(window, Window)
    return window
