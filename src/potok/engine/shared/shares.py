"""What each member does in one batch, as the offset that Spark keeps for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from potok.engine.source import offsets_of_batch
from potok.state.entry import Entry
from potok.state.offsets import Ends, Offsets


@dataclass(frozen=True, slots=True)
class Share:
    """One member's part of a batch: from where its ledger stood when the batch was planned, to where it should come."""

    start: Ends
    end: Offsets

    def fits(self, entry: Entry) -> bool:
        """Whether the ledger stands where this begins. Otherwise it was done before, or the query was set elsewhere."""
        known = entry.offsets.topics
        return all(known[topic] == dict(parts) for topic, parts in self.start.items() if topic in known)

    def to_json(self) -> dict[str, Any]:
        start = Offsets({topic: dict(parts) for topic, parts in self.start.items()})
        return {"from": start.to_json()["topics"], "to": self.end.to_json()}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Share:
        return cls(Offsets.of_json({"topics": data["from"], "tick": 0}).topics, Offsets.of_json(data["to"]))


@dataclass(frozen=True, slots=True)
class Shares:
    """All of a batch. Members with nothing to do are left out; those `in_trouble` cannot even be planned.

    Spark tells by the text whether there is anything new, and a share that was not done comes again as it was: so the
    time is part of it.
    """

    at_ms: int = 0
    shares: Mapping[str, Share] = field(default_factory=dict)
    in_trouble: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        shares = {name: share.to_json() for name, share in sorted(self.shares.items())}
        return {"at": self.at_ms, "shares": shares, "in_trouble": list(self.in_trouble)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Shares:
        shares = {name: Share.of_json(share) for name, share in data["shares"].items()}
        return cls(data["at"], shares, tuple(data["in_trouble"]))


def shares_of_batch(checkpoint: Path, batch_id: int) -> Shares:
    """What Spark wrote down before it began a batch."""
    lines = (checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
    return Shares.of_json(json.loads(lines[-1]))


def unfinished(checkpoint: Path) -> Offsets | None:
    """Where the batch should have ended that a query of its own began and did not finish."""
    begun, done = (
        max((int(path.name) for path in (checkpoint / kind).glob("*") if path.name.isdigit()), default=-1)
        for kind in ("offsets", "commits")
    )
    return offsets_of_batch(checkpoint, begun) if begun > done else None


def last_shares(checkpoint: Path) -> Shares:
    """The last batch that Spark wrote down, whether it was finished or not; nothing if there is none."""
    batches = [int(path.name) for path in (checkpoint / "offsets").glob("*") if path.name.isdigit()]
    return shares_of_batch(checkpoint, max(batches)) if batches else Shares()
