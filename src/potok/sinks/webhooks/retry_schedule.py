"""When a webhook is sent again: fixed pauses with jitter, and never earlier than the receiver asks for."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000

DEFAULT_PAUSES_MS = (
    5 * SECOND,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
)
"""The pauses that Standard Webhooks recommends: ten attempts in a little more than three days."""

_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """The pause after each failed attempt. After the last one the delivery has failed."""

    pauses_ms: tuple[int, ...] = DEFAULT_PAUSES_MS

    def next_at(self, identifier: str, attempt: int, now_ms: int, retry_after_s: float = 0.0) -> int | None:
        """Return when to repeat the failed attempt number `attempt`, counted from 1; None if it was the last.

        The jitter spreads what failed together over the following fifth of the pause. It is derived from the id, so a
        restarted process finds the same time.
        """
        if attempt > len(self.pauses_ms):
            return None
        pause = self.pauses_ms[attempt - 1]
        share = zlib.crc32(f"{identifier}/{attempt}".encode()) / 2**32
        return now_ms + max(int(pause * (1 + _JITTER * share)), int(retry_after_s * 1_000))
