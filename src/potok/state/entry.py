"""An entry of the ledger: what a committed batch stores for the next one, and for readers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from potok.errors import StateError
from potok.state.fence import Attempt, Fence
from potok.state.offsets import Offsets

LAYOUT = 4


class MetadataUnreadable(StateError):
    """Query metadata in an unexpected format: damaged, or written by another program or version."""

    def __init__(self, what: str, error: BaseException) -> None:
        super().__init__(
            f"{what} cannot be read: {type(error).__name__}: {error}",
            hint="restore it from a backup, or use the version of Potok that wrote it",
        )


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Raise `MetadataUnreadable` for data in an unexpected format."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise MetadataUnreadable(what, error) from error


@dataclass(frozen=True, slots=True)
class Entry:
    """What a committed batch stores for the next one.

    `batch` is the last committed batch of `epoch`; `ended` the last committed batch of each earlier epoch that did
    not end cleanly. `stream_times` are per partition; `next_ends` is, per step, the end of its next window,
    `next_timers` the processing time of its next timer, and `watermarks` the watermark that the batch used. `cells` is
    the last committed attempt that wrote to every shard: state that has not seen it was lost, or restored from an
    older copy. `positions` are those of the shards in object storage after the batch. `intended` is the end of a batch
    that was started and whose output may already be visible: it is run again to the same end.
    """

    epoch: int = 0
    batch: int = 0
    offsets: Offsets = field(default_factory=Offsets)
    stream_times: dict[str, dict[int, int]] = field(default_factory=dict)
    next_ends: dict[str, int] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    shards: int = 0
    topic_ids: dict[str, str] = field(default_factory=dict)
    clean: bool = True
    next_timers: dict[str, int] = field(default_factory=dict)
    cells: Attempt | None = None
    intended: Offsets | None = None
    positions: dict[int, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        data: dict[str, Any] = {
            "layout": LAYOUT,
            "epoch": self.epoch,
            "batch": self.batch,
            "offsets": self.offsets.to_json(),
            "stream_times": self.stream_times,
            "next_ends": self.next_ends,
            "watermarks": self.watermarks,
            "ended": self.ended,
            "shards": self.shards,
            "topic_ids": self.topic_ids,
            "clean": self.clean,
            "next_timers": self.next_timers,
            "cells": self.cells,
            **({"intended": self.intended.to_json()} if self.intended else {}),
            **({"positions": self.positions} if self.positions else {}),
        }
        return json.dumps(data, sort_keys=True).encode()

    @classmethod
    def of_bytes(cls, data: bytes) -> Entry:
        with decoding("the ledger of a query"):
            return cls._of_json(json.loads(data))

    @classmethod
    def _of_json(cls, found: dict[str, Any]) -> Entry:
        if found["layout"] != LAYOUT:
            raise StateError(
                f"the state was written by another version of Potok (layout {found['layout']})",
                hint="use that version, or delete the query's directory to start over",
            )
        return cls(
            found["epoch"],
            found["batch"],
            Offsets.of_json(found["offsets"]),
            {topic: {int(p): t for p, t in parts.items()} for topic, parts in found["stream_times"].items()},
            found["next_ends"],
            found["watermarks"],
            {int(epoch): batch for epoch, batch in found["ended"].items()},
            found["shards"],
            found["topic_ids"],
            found["clean"],
            found.get("next_timers", {}),
            Attempt(*found["cells"]) if found.get("cells") else None,
            Offsets.of_json(found["intended"]) if found.get("intended") else None,
            {int(shard): str(position) for shard, position in found.get("positions", {}).items()},
        )

    def sealed(self, *, after: Entry | None = None, batch: int = 0) -> Entry:
        """Return the entry from which a stopped query resumes, regardless of what was started since.

        Cells of its epoch count up to its batch; those of a running batch never do. The next entry has a higher epoch
        than any, here or `after`, and a batch number above both and above `batch`: what was published under a number
        stays published.
        """
        last = after or self
        return replace(
            self,
            epoch=max(self.epoch, last.epoch) + 1,
            batch=max(self.batch, last.batch, batch),
            ended={**self.ended, self.epoch: self.batch},
            clean=True,
            intended=None,
        )

    @property
    def fence(self) -> Fence:
        """Return the fence of the next attempt, and of a reader."""
        return Fence(Attempt(self.epoch, self.batch + 1), self.ended)


def metadata_key_of(query: str, what: str) -> str:
    return f"query/{query}/{what}"
