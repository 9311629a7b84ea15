"""The statements that made the catalogue what it is, kept beside the log: read again, they make it once more.

Numbers are never given twice: those of commands that were removed are missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from potok.log.broker import Broker
from potok.log.errors import MetadataConflict
from potok.log.failpoint import failpoint
from potok.statements.errors import CatalogueMoved

_PREFIX = "sql/command/"
_COUNT = "sql/commands"
_LEFT = "sql/commands-left"


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
        data = self._broker.get_metadata(_COUNT)
        return 0 if data is None else int(data)

    def all(self) -> list[Command]:
        """Those that were appended and not removed, as of one instant."""
        metadata_keys = self._broker.list_metadata(_PREFIX)
        found = sorted((int(name.removeprefix(_PREFIX)), data) for name, data in metadata_keys.items())
        return [Command.of_bytes(number, data) for number, data in found]

    def since(self, number: int) -> list[Command] | None:
        """Those from a number on, for who follows the log: a few, read one by one. None if some of them were removed:
        what they ended may be there for that reader, who has to begin with the first."""
        numbers = range(number, self.count)
        found = [(one, self._broker.get_metadata(_name(one))) for one in numbers]
        told = [Command.of_bytes(one, data) for one, data in found if data is not None]
        return told if len(told) == len(numbers) else None

    @property
    def left(self) -> int:
        """How many were left when some were removed the last time."""
        return int(self._broker.get_metadata(_LEFT) or 0)

    def remove(self, over: Iterable[int], left: int, count: int) -> None:
        """Remove commands, all at once. Raises `CatalogueMoved` where there are not `count` any more."""
        failpoint("commands.compact")
        metadata_keys: dict[str, bytes | None] = {_name(number): None for number in over}
        try:
            self._broker.set_metadata({**metadata_keys, _LEFT: str(left).encode()}, {_COUNT: str(count).encode()})
        except MetadataConflict:
            raise CatalogueMoved from None
        failpoint("commands.compacted")

    def append(self, command: Command, along: Mapping[str, bytes | None] = MappingProxyType({})) -> None:
        """Write a command down, and marks along with it. Raises `CatalogueMoved` where somebody else has taken its
        number meanwhile."""
        expected = {_COUNT: str(command.sequence).encode() if command.sequence else None}
        own = {_name(command.sequence): command.to_bytes(), _COUNT: str(command.sequence + 1).encode()}
        try:
            self._broker.set_metadata({**along, **own}, expected)
        except MetadataConflict:
            raise CatalogueMoved from None


def _name(sequence: int) -> str:
    return f"{_PREFIX}{sequence:08d}"
