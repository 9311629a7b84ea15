"""How large a batch may be, so that it takes about as long as it should."""

from __future__ import annotations

from dataclasses import dataclass

LEAST = 1_000
FIRST = 250_000


@dataclass(slots=True)
class Pace:
    """Grows while batches are quick and shrinks when one takes too long, so that a backlog does not blow the memory."""

    target_ms: int
    most: int
    limit: int = FIRST

    def __post_init__(self) -> None:
        self.limit = min(self.limit, self.most)

    def learn(self, records: int, batch_ms: int) -> int:
        """Take one batch into account; returns the limit for the next one."""
        full = records >= self.limit * 0.9
        factor = self.target_ms / max(batch_ms, 1)
        if factor < 1 and records > LEAST:
            self.limit = int(min(self.limit, records) * max(factor, 0.5))
        elif factor > 1 and full:
            self.limit = int(self.limit * min(factor, 4.0))
        self.limit = min(max(LEAST, self.limit), self.most)
        return self.limit
