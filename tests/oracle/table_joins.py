"""Joins of two tables: the result of a key is made anew from both rows whenever one of them changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from potok.expressions.function import Function
from potok.topology.nodes import Node, Session, Sliding, TableJoin, Window
from tests.oracle.call import UserError, attempt
from tests.oracle.canonical import canonical
from tests.oracle.decode import row
from tests.oracle.table_groups import Made
from tests.oracle.tables import Change


class JoinRows:
    """The rows of both sides by key."""

    def __init__(self, node: TableJoin) -> None:
        self.node = node
        self.sides: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        self.keys: dict[str, Any] = {}
        self.last: dict[str, Change] = {}

    def take(self, upstream: Node, change: Change) -> Made:
        # That one table drops a window because it is over does not undo what came of it.
        if change.dropped:
            return []
        text = canonical(change.key)
        self.keys[text], self.last[text] = change.key, change
        before = self.result(text)
        for side, table in zip(self.sides, (self.node.left, self.node.right), strict=True):
            if table is upstream:
                side[text] = change.after
        after = self.result(text)
        if canonical(before) == canonical(after):
            return []
        return [(self.node, replace(change, before=before, after=after))]

    def result(self, text: str) -> Any:
        left, right = (side.get(text) for side in self.sides)
        return joined(self.node, self.node.function, self.node.how, self.keys[text], left, right)

    def close(self, stream_time_ms: int) -> list[Change]:
        """Drop the windows that are over for both tables."""
        windows = windows_of(self.node)
        over = [text for text, key in self.keys.items() if windows and self.ends(key, windows) <= stream_time_ms]
        gone = [replace(self.last[text], before=self.result(text), after=None, dropped=True) for text in over]
        for text in over:
            del self.keys[text]
            for side in self.sides:
                side.pop(text, None)
        return gone

    def ends(self, key: Any, windows: list[Window]) -> int:
        """When the window is closed, and its result need not be readable any more, by both."""
        return max(max(closes_ms(window, key), int(key["end"]) + window.retention_ms) for window in windows)

    def rows(self) -> dict[str, Any]:
        found = {text: self.result(text) for text in self.keys}
        return {text: value for text, value in found.items() if value is not None}


def windows_of(node: Node) -> list[Window]:
    """The windows of the tables that a table with windows is made of."""
    window = getattr(node, "window", None)
    if isinstance(window, Window):
        return [window]
    return [found for upstream in node.upstreams if upstream.is_table for found in windows_of(upstream)]


def closes_ms(window: Window, key: Any) -> int:
    if isinstance(window, Session):
        last_ms = int(key["start"]) - 1 if window.from_first else int(key["end"])
        return last_ms + 2 * window.gap_ms + window.grace_ms + 1
    return int(key["end"]) + window.grace_ms + isinstance(window, Sliding)


def joined(node: Node, function: Function | None, how: str, key: Any, left: Any, right: Any) -> Any:
    """What two rows make together, None where the kind of join wants nothing."""
    alone = {"inner": False, "left": left is not None, "outer": left is not None or right is not None}[how]
    if not alone and (left is None or right is None):
        return None
    if function is None:
        return {"left": left, "right": right}
    given = (left, right) if function.arity == 2 else (key, left, right)
    try:
        return attempt(function.callable, *map(row, given))
    except UserError as error:
        raise NotImplementedError(f"{node.name} raised; what is promised says nothing of that") from error
