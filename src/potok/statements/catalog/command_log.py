"""The statements that define the catalog, stored in the metadata of the log. Replaying them restores the catalog.

Sequence numbers are never reused; those of removed commands are missing.
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
from potok.statements.errors import CatalogChanged

_PREFIX = "sql/command/"
_COUNT = "sql/commands"
_LEFT = "sql/commands-left"


@dataclass(frozen=True, slots=True)
class Command:
    """One statement of the log. `query_id` is the query that it started, if any."""

    sequence: int
    text: str
    query_id: str = ""
    properties: dict[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        fields: dict[str, Any] = {"text": self.text, "query": self.query_id, "properties": self.properties}
        return json.dumps(fields).encode()

    @classmethod
    def of_bytes(cls, sequence: int, data: bytes) -> Command:
        fields = json.loads(data)
        return cls(sequence, fields["text"], fields["query"], fields["properties"])


class CommandLog:
    """A totally ordered log of commands, with any number of writers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def count(self) -> int:
        """How many commands were ever appended, which is the next sequence number."""
        data = self._broker.get_metadata(_COUNT)
        return 0 if data is None else int(data)

    def all(self) -> list[Command]:
        """Return all commands that were not removed, as of one snapshot."""
        metadata_keys = self._broker.list_metadata(_PREFIX)
        found = sorted((int(name.removeprefix(_PREFIX)), data) for name, data in metadata_keys.items())
        return [Command.of_bytes(number, data) for number, data in found]

    def since(self, number: int) -> list[Command] | None:
        """Return the commands from a sequence number on, read one by one. None if some were removed: the reader may
        still hold what they ended, and has to start over."""
        numbers = range(number, self.count)
        found = [(one, self._broker.get_metadata(_name(one))) for one in numbers]
        commands = [Command.of_bytes(one, data) for one, data in found if data is not None]
        return commands if len(commands) == len(numbers) else None

    @property
    def left(self) -> int:
        """How many commands the last compaction left."""
        return int(self._broker.get_metadata(_LEFT) or 0)

    def remove(self, over: Iterable[int], left: int, count: int) -> None:
        """Remove commands, all at once. Raises `CatalogChanged` if the log no longer has `count` commands."""
        failpoint("commands.compact")
        metadata_keys: dict[str, bytes | None] = {_name(number): None for number in over}
        try:
            self._broker.set_metadata({**metadata_keys, _LEFT: str(left).encode()}, {_COUNT: str(count).encode()})
        except MetadataConflict:
            raise CatalogChanged from None
        failpoint("commands.compacted")

    def append(self, command: Command, along: Mapping[str, bytes | None] = MappingProxyType({})) -> None:
        """Append a command together with metadata keys. Raises `CatalogChanged` if its sequence number was taken
        meanwhile."""
        expected = {_COUNT: str(command.sequence).encode() if command.sequence else None}
        own = {_name(command.sequence): command.to_bytes(), _COUNT: str(command.sequence + 1).encode()}
        try:
            self._broker.set_metadata({**along, **own}, expected)
        except MetadataConflict:
            raise CatalogChanged from None


def _name(sequence: int) -> str:
    return f"{_PREFIX}{sequence:08d}"
