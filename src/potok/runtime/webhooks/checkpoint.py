"""The remaining deliveries, in one metadata key: it saves reading all deliveries and attempts at a start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from potok.log.broker import Broker
from potok.runtime.webhooks.receiver import Receiver
from potok.state.entry import metadata_key_of


def webhooks_key(query: str) -> str:
    return metadata_key_of(query, "webhooks")


@dataclass(slots=True)
class Checkpoint:
    """The state of all receivers after the attempts below `attempts`, and the start of the query that wrote it."""

    epoch: int = 0
    attempts: int = 0
    receivers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By receiver, including those no longer in the program: they resume if they are added again."""

    @classmethod
    def of_bytes(cls, data: bytes | None) -> Checkpoint:
        return cls() if data is None else cls(**orjson.loads(data))

    def to_bytes(self) -> bytes:
        return orjson.dumps({"epoch": self.epoch, "attempts": self.attempts, "receivers": self.receivers})


class CheckpointStore:
    """Reads and replaces the checkpoint of a query. A later start of the query makes every write of this one fail."""

    def __init__(self, broker: Broker, query: str) -> None:
        self._broker, self._key = broker, webhooks_key(query)
        self._last = broker.get_metadata(self._key)

    def load(self) -> Checkpoint:
        return Checkpoint.of_bytes(self._last)

    def save(self, epoch: int, attempts: int, receivers: Mapping[str, Receiver]) -> None:
        """Raise `MetadataConflict` if another process has written one."""
        states = {name: receiver.to_state() for name, receiver in receivers.items()}
        data = Checkpoint(epoch, attempts, {**self.load().receivers, **states}).to_bytes()
        if data != self._last:
            self._broker.set_metadata({self._key: data}, {self._key: self._last})
            self._last = data
