"""An entry of the ledger: all that a committed batch leaves behind for the next one, and for readers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from potok.errors import StateError
from potok.state.fence import Attempt, Fence
from potok.state.offsets import Offsets

LAYOUT = 3


class MetadataUnreadable(StateError):
    """Metadata of a query that is not as Potok writes it: damaged, or written by another program or version."""

    def __init__(self, what: str, error: BaseException) -> None:
        super().__init__(
            f"{what} cannot be read: {type(error).__name__}: {error}",
            hint="restore it from a backup, or use the version of Potok that wrote it",
        )


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Raise `MetadataUnreadable` for data of another form."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise MetadataUnreadable(what, error) from error


@dataclass(frozen=True, slots=True)
class Entry:
    """All that a batch leaves behind for the next one.

    `batch` is the last committed one of `epoch`; `ended` the last committed batch of each earlier epoch that did not
    end in order. `stream_times` are per partition; `next_ends` tell, per step, when its next window is
    over, `next_timers` at which processing time it has something to do, and `clocks` the closing clock that the batch
    used. `cells` is the last committed attempt that wrote to every shard: state that has not seen it was lost, or put
    back from an older copy. `intended` is the end of a batch that was begun and may be visible outside the ledger: it
    is run again to the same end.
    """

    epoch: int = 0
    batch: int = 0
    offsets: Offsets = field(default_factory=Offsets)
    stream_times: dict[str, dict[int, int]] = field(default_factory=dict)
    next_ends: dict[str, int] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    shards: int = 0
    topic_ids: dict[str, str] = field(default_factory=dict)
    clean: bool = True
    next_timers: dict[str, int] = field(default_factory=dict)
    cells: Attempt | None = None
    intended: Offsets | None = None

    def to_bytes(self) -> bytes:
        data: dict[str, Any] = {
            "layout": LAYOUT,
            "epoch": self.epoch,
            "batch": self.batch,
            "offsets": self.offsets.to_json(),
            "stream_times": self.stream_times,
            "next_ends": self.next_ends,
            "clocks": self.clocks,
            "ended": self.ended,
            "shards": self.shards,
            "topic_ids": self.topic_ids,
            "clean": self.clean,
            "next_timers": self.next_timers,
            "cells": self.cells,
            **({"intended": self.intended.to_json()} if self.intended else {}),
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
            found["clocks"],
            {int(epoch): batch for epoch, batch in found["ended"].items()},
            found["shards"],
            found["topic_ids"],
            found["clean"],
            found.get("next_timers", {}),
            Attempt(*found["cells"]) if found.get("cells") else None,
            Offsets.of_json(found["intended"]) if found.get("intended") else None,
        )

    def sealed(self, *, after: Entry | None = None, batch: int = 0) -> Entry:
        """The same as the place from which a stopped query goes on, whatever was begun since.

        Cells of its epoch count up to its batch, and those of a batch that was running never do. What comes next has a
        higher epoch than anybody had, here or `after`, and a number of a batch above both and above `batch`: what is
        out under a number stays out.
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
        """What counts for the next attempt, and for a reader."""
        return Fence(Attempt(self.epoch, self.batch + 1), self.ended)


def mark_of(query: str, what: str) -> str:
    return f"query/{query}/{what}"
