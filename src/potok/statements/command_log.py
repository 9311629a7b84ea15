"""The statements that made the catalogue what it is, kept beside the log: read again, they make it once more."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
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
    """Appends commands in one order, whoever appends."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._count = self._read_count()

    def commands(self) -> list[Command]:
        self._count = self._read_count()
        found = self._broker.marks(_PREFIX)
        numbered = {int(name.removeprefix(_PREFIX)): data for name, data in found.items()}
        return [Command.of_bytes(sequence, numbered[sequence]) for sequence in sorted(numbered)]

    @property
    def next_sequence(self) -> int:
        return self._count

    @property
    def has_moved(self) -> bool:
        """Whether somebody else has appended."""
        return self._read_count() != self._count

    def append(self, command: Command) -> None:
        """Raises `CatalogueMoved` where somebody else appended meanwhile."""
        expected = {_COUNT: str(self._count).encode() if self._count else None}
        updates = {
            f"{_PREFIX}{command.sequence:08d}": command.to_bytes(),
            _COUNT: str(command.sequence + 1).encode(),
        }
        try:
            self._broker.set_marks(updates, expected)
        except MarkChanged:
            raise CatalogueMoved from None
        self._count = command.sequence + 1

    def _read_count(self) -> int:
        data = self._broker.mark(_COUNT)
        return 0 if data is None else int(data)
