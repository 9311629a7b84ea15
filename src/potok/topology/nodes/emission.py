"""Steps that choose when the changes of a table go on."""

from __future__ import annotations

from dataclasses import dataclass

from potok.topology.nodes.node import Node
from potok.topology.nodes.table_joins import windows_of


@dataclass(frozen=True, slots=True, eq=False)
class Suppress(Node):
    """Holds changes back: each row until its window closes or, with `every_ms`, for so long after its first change.

    What goes on is the last of the changes that were held. The result of a window has its own time as stream time. A
    change that was held for `every_ms` has the least stream time of those that it stands for: if it was not late when
    it came, it is not late because it was held.
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
