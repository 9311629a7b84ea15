"""The statements that made the catalogue what it is, kept beside the log: read again, they make it once more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from potok.log.broker import Broker
from potok.log.errors import MarkChanged
from potok.statements.errors import CatalogueMoved

_PREFIX = "sql/command/"
_COUNT = "sql/commands"


@dataclass(frozen=True, slots=True)
class Command:
    """One statement of the log. `query_id` is the query it began, if it began one."""

    sequence: int
    text: str
    query_id: str = ""
    properties: dict[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        told: dict[str, Any] = {"text": self.text, "query": self.query_id, "properties": self.properties}
        return json.dumps(told).encode()

    @classmethod
    def of_bytes(cls, sequence: int, data: bytes) -> Command:
        told = json.loads(data)
        return cls(sequence, told["text"], told["query"], told["properties"])


class CommandLog:
    """Commands in one order, whoever appends them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def count(self) -> int:
        """How many were ever appended: the number of the next one."""
        data = self._broker.mark(_COUNT)
        return 0 if data is None else int(data)

    def commands(self, since: int = 0) -> list[Command]:
        """Those from a number on. Whoever follows the log asks for the few that are new, one by one."""
        if since:
            numbers = range(since, self.count)
            found = {number: self._broker.mark(_name(number)) for number in numbers}
        else:
            marks = self._broker.marks(_PREFIX)
            found = {int(name.removeprefix(_PREFIX)): data for name, data in marks.items()}
        return [Command.of_bytes(number, data) for number, data in sorted(found.items()) if data is not None]

    def append(self, command: Command, along: Mapping[str, bytes | None] = MappingProxyType({})) -> None:
        """Write a command down, and marks along with it. Raises `CatalogueMoved` where somebody else has taken its
        number meanwhile."""
        expected = {_COUNT: str(command.sequence).encode() if command.sequence else None}
        own = {_name(command.sequence): command.to_bytes(), _COUNT: str(command.sequence + 1).encode()}
        try:
            self._broker.set_marks({**along, **own}, expected)
        except MarkChanged:
            raise CatalogueMoved from None


def _name(sequence: int) -> str:
    return f"{_PREFIX}{sequence:08d}"
