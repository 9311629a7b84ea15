"""Joins of two tables: the result of a key is made anew from both rows whenever one of them changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from potok.expressions.function import Function
from potok.topology.nodes import Node, TableJoin
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

    def take(self, upstream: Node, change: Change) -> Made:
        text = canonical(change.key)
        self.keys[text] = change.key
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

    def rows(self) -> dict[str, Any]:
        found = {text: self.result(text) for text in self.keys}
        return {text: value for text, value in found.items() if value is not None}


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
