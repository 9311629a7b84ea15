"""What a listener does when records arrive faster than the log accepts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from potok.duration import Duration, to_ms
from potok.errors import TopologyError

BufferKind = Literal["memory", "disk"]
WhenFull = Literal["block", "drop_newest", "drop_oldest", "reject"]

POLICIES: tuple[WhenFull, ...] = get_args(WhenFull)


@dataclass(frozen=True, slots=True)
class Overload:
    """The bounds of the buffer between a listener and the log, and the policy once it is full.

    Args:
        buffer: `memory`, or `disk` for files in the directory for temporary files; neither outlives the process, so
            senders are acknowledged once their records are in the log.
        max_records: The most records that are buffered.
        max_bytes: The most bytes that are buffered: keys, values and headers.
        max_age: A record that was buffered for longer is dropped; by default it never is.
        when_full: `block` stops reading, or asks the sender to slow down; `reject` refuses the record; `drop_newest`
            and `drop_oldest` drop records, and count them.
    """

    buffer: BufferKind = "memory"
    max_records: int = 100_000
    max_bytes: int = 64 << 20
    max_age: Duration | None = None
    when_full: WhenFull = "block"

    def __post_init__(self) -> None:
        if self.buffer not in get_args(BufferKind):
            raise TopologyError(f"there is no buffer {self.buffer!r}", hint='use "memory" or "disk"')
        if self.when_full not in POLICIES:
            raise TopologyError(f"there is no when_full {self.when_full!r}", hint=f"use one of {', '.join(POLICIES)}")
        for name in ("max_records", "max_bytes"):
            number = getattr(self, name)
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise TopologyError(f"{name} = {number!r} is not a positive whole number", hint=f"write {name} = 10000")
        if self.max_age_ms is not None and self.max_age_ms <= 0:
            raise TopologyError("max_age must be longer than 0", hint='write max_age = "1 minute", or leave it out')

    @property
    def max_age_ms(self) -> int | None:
        return None if self.max_age is None else to_ms(self.max_age)

    def allow(self, policies: tuple[WhenFull, ...], why: str) -> None:
        """Refuse a policy that a protocol cannot carry out."""
        if self.when_full not in policies:
            raise TopologyError(
                f'when_full = "{self.when_full}" is not possible: {why}', hint=f"use {' or '.join(policies)}"
            )
