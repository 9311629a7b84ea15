"""Joins by a foreign key: all rows are looked through for those that refer to the one that changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from potok.topology.nodes import ForeignJoin, Node
from tests.oracle.call import UserError, call
from tests.oracle.canonical import canonical
from tests.oracle.table_groups import Made
from tests.oracle.table_joins import joined
from tests.oracle.tables import Change


class ForeignRows:
    """The rows of both tables; `lefts` has their own keys too."""

    def __init__(self, node: ForeignJoin) -> None:
        self.node = node
        self.lefts: dict[str, tuple[Any, Any]] = {}
        self.rights: dict[str, Any] = {}

    def take(self, upstream: Node, change: Change) -> Made:
        text, match = canonical(change.key), self.node.upstream
        touched = []
        if upstream is match.right:
            touched += [left for left, (key, value) in self.lefts.items() if self.foreign(key, value) == text]
        if upstream is match.left.upstream and text not in touched:
            touched.append(text)
        before = {left: self.result(left) for left in touched}
        if upstream is match.right:
            self.rights[text] = change.after
        if upstream is match.left.upstream:
            self.lefts[text] = change.key, change.after
        made = []
        for left in touched:
            after = self.result(left)
            if canonical(after) != canonical(before[left]):
                key = self.lefts[left][0]
                made.append((self.node, replace(change, key=key, before=before[left], after=after)))
        return made

    def foreign(self, key: Any, value: Any) -> str | None:
        """What a row refers to."""
        if value is None:
            return None
        try:
            found = call(self.node.upstream.left.function, key, value)
        except UserError as error:
            raise NotImplementedError(f"{self.node.name} raised; what is promised says nothing of that") from error
        return None if found is None else canonical(found)

    def result(self, left: str) -> Any:
        key, value = self.lefts.get(left, (None, None))
        foreign = self.foreign(key, value)
        right = None if foreign is None else self.rights.get(foreign)
        match = self.node.upstream
        return joined(match, match.function, match.how, key, value, right)

    def rows(self) -> dict[str, Any]:
        found = {left: self.result(left) for left in self.lefts}
        return {left: value for left, value in found.items() if value is not None}
