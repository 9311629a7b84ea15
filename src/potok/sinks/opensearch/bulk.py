"""Bulk requests: actions split by bytes, and what the server says about each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from potok.sinks.opensearch.client import NOT_NOW, describe_error


@dataclass(frozen=True, slots=True)
class Action:
    """Write or delete one document; `row` is the number of the record."""

    row: int
    identifier: str
    document: bytes | None

    def to_lines(self, index: str, version: int | None) -> bytes:
        meta: dict[str, Any] = {"_index": index, "_id": self.identifier}
        if version is not None:
            meta |= {"version": version, "version_type": "external_gte"}
        if self.document is None:
            return orjson.dumps({"delete": meta}) + b"\n"
        return orjson.dumps({"index": meta}) + b"\n" + self.document + b"\n"


Request = tuple[list[Action], bytes]


def requests(actions: Sequence[Action], index: str, version: int | None, most: int) -> Iterator[Request]:
    """Yield actions with the body of their request, of up to `most` bytes or a single action."""
    chosen: list[Action] = []
    lines: list[bytes] = []
    size = 0
    for action in actions:
        line = action.to_lines(index, version)
        if chosen and size + len(line) > most:
            yield chosen, b"".join(lines)
            chosen, lines, size = [], [], 0
        chosen.append(action)
        lines.append(line)
        size += len(line)
    if chosen:
        yield chosen, b"".join(lines)


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What the server says about one action."""

    status: int
    error: str

    @property
    def taken(self) -> bool:
        """A document that is not there needs no delete."""
        return 200 <= self.status < 300 or (self.status == 404 and not self.error)

    @property
    def passes(self) -> bool:
        return self.status in NOT_NOW

    @property
    def conflicts(self) -> bool:
        return self.status == 409


def item_results(body: Any, actions: Sequence[Action]) -> list[ItemResult] | None:
    """Return one result per action; None if the answer is not one of a bulk request."""
    items = body.get("items") if isinstance(body, dict) else None
    if not isinstance(items, list) or len(items) != len(actions):
        return None
    found = [next(iter(item.values())) if isinstance(item, dict) and item else None for item in items]
    if not all(isinstance(each, dict) and isinstance(each.get("status"), int) for each in found):
        return None
    return [
        ItemResult(each["status"], describe_error(each["error"]) if "error" in each else "") for each in found if each
    ]
