"""Who takes part, written beside the log: the process that plans the batches is not the one that runs them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from potok.engine.shared.shares import Share
from potok.errors import QueryError
from potok.log.broker import Broker
from potok.topology.alignment import AlignedTopics


@dataclass(frozen=True, slots=True)
class Listed:
    """What must be known of a member to plan for it."""

    topics: tuple[str, ...]
    steps: Mapping[str, frozenset[str]]
    """The steps that have something to close, with the topics whose records reach them."""
    aligned: tuple[AlignedTopics, ...] = ()

    def to_json(self) -> dict[str, Any]:
        steps = {step: sorted(topics) for step, topics in self.steps.items()}
        return {"topics": self.topics, "steps": steps, "aligned": [group.to_json() for group in self.aligned]}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Listed:
        steps = {step: frozenset(topics) for step, topics in data["steps"].items()}
        return cls(tuple(data["topics"]), steps, tuple(map(AlignedTopics.of_json, data.get("aligned", []))))


@dataclass(frozen=True, slots=True)
class Roll:
    """The members that run, and what is owed.

    A share that was begun and not committed is owed, whoever is running at the moment: it is done again to the same
    end, because a sink or Kafka may hold its output already and knows it by its offsets.
    A member that waits for a server or a sink has nothing to do before the time (ms since 1970) in `waiting_until`.
    """

    running: Mapping[str, Listed] = field(default_factory=dict)
    owed: Mapping[str, Share] = field(default_factory=dict)
    waiting_until: Mapping[str, int] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        running = {name: listed.to_json() for name, listed in self.running.items()}
        owed = {name: share.to_json() for name, share in self.owed.items()}
        data = {"running": running, "owed": owed, "waiting_until": dict(self.waiting_until)}
        return json.dumps(data, sort_keys=True).encode()

    @classmethod
    def of_bytes(cls, data: bytes | None) -> Roll:
        if data is None:
            return cls()
        found = json.loads(data)
        return cls(
            {name: Listed.of_json(listed) for name, listed in found["running"].items()},
            {name: Share.of_json(share) for name, share in found["owed"].items()},
            found.get("waiting_until", {}),
        )


def roll_mark(shared: str) -> str:
    return f"shared/{shared}/roll"


def owner_mark(shared: str) -> str:
    """Names the process that runs the members: whoever writes the roll expects to find itself there."""
    return f"shared/{shared}/owner"


def shared_directory(broker: Broker, shared: str) -> Path:
    """Where the lock and the checkpoint of a shared query are."""
    root = getattr(broker, "directory", None)
    if root is None:
        raise QueryError(f'the shared query "{shared}" needs a directory', hint='run with broker="file:./data"')
    return Path(root) / "shared" / shared
