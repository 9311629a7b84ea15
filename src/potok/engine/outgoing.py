"""What a task has for a sink outside the log: its records as bytes, in the report or in a file, or a part it wrote."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from potok.kernels.chunk import Chunk, from_wire, to_wire
from potok.sinks.target import Part

INLINE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Records of one step from one task. `task` is the shard, or the number of the task that read them."""

    step: str
    task: int
    count: int
    data: bytes = b""
    path: str = ""
    part: Part | None = None

    def chunk(self) -> Chunk:
        return from_wire(Path(self.path).read_bytes() if self.path else self.data)


def stage_chunk(staging: Path | None, step: str, task: int, chunk: Chunk) -> Outgoing:
    """Keep small output inline; write what is larger to a file, if there is a place: it need not outlive the batch."""
    data = to_wire(chunk)
    if staging is None or len(data) < INLINE_BYTES:
        return Outgoing(step, task, len(chunk), data)
    path = staging / f"{uuid.uuid4().hex}.outgoing"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return Outgoing(step, task, len(chunk), path=str(path))
