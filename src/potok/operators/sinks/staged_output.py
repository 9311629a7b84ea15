"""Output of a task for an external sink: its records as bytes, in the report or in a file, or a part it wrote."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from pathlib import Path

from potok.errors import QueryError
from potok.operators.core.chunk import Chunk, from_wire, to_wire
from potok.permissions import private_directory, write_private
from potok.sinks.sink_spec import Part

INLINE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Records of one step from one task. `task` is the shard, or the number of the task that read them."""

    step: str
    task: int
    count: int
    data: bytes = b""
    path: str = ""
    digest: bytes = b""
    part: Part | None = None

    def chunk(self) -> Chunk:
        if not self.path:
            return from_wire(self.data)
        data = Path(self.path).read_bytes()
        if _digest(data) != self.digest:
            raise QueryError(
                f"{self.path} differs from what the task wrote, so its records were not read",
                hint="check which users can write to the query's directory; the next start runs the batch again",
            )
        return from_wire(data)


def _digest(data: bytes) -> bytes:
    """Return the digest that the report carries: a file is deserialized only if it is what the task wrote."""
    return hashlib.blake2b(data, digest_size=32).digest()


def stage_chunk(staging: Path | None, step: str, task: int, chunk: Chunk) -> Outgoing:
    """Keep small output inline; write larger output to a file, if possible: it need not outlive the batch."""
    data = to_wire(chunk)
    if staging is None or len(data) < INLINE_BYTES:
        return Outgoing(step, task, len(chunk), data)
    path = staging / f"{uuid.uuid4().hex}.outgoing"
    private_directory(path.parent)
    write_private(path, data)
    return Outgoing(step, task, len(chunk), path=str(path), digest=_digest(data))
