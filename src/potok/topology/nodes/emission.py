"""Steps that decide when the changes of a table are emitted."""

from __future__ import annotations

from dataclasses import dataclass

from potok.topology.nodes.node import Node
from potok.topology.nodes.table_joins import windows_of


@dataclass(frozen=True, slots=True, eq=False)
class Suppress(Node):
    """Buffers changes: each row until its window closes or, with `every_ms`, for that long after its first change.

    Only the last of the buffered changes is emitted. The result of a window has its own timestamp as stream
    time. A change buffered for `every_ms` has the least stream time of the changes that it replaces: if it was
    not late when it arrived, buffering does not make it late.
    """

    upstream: Node
    every_ms: int | None = None

    @property
    def keeps(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return True

    @property
    def holds_back_ms(self) -> int:
        if self.every_ms is not None:
            return max(self.every_ms - 1, 0)
        return max((window.delay_ms for window in windows_of(self.upstream)), default=0)

    @property
    def is_table(self) -> bool:
        return True
