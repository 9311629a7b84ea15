"""Steps that choose when the changes of a table go on."""

from __future__ import annotations

from dataclasses import dataclass

from potok.topology.nodes.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Suppress(Node):
    """Holds changes back: each row until its window closes or, with `every_ms`, for so long after its first change.

    What goes on is the last of the changes that were held.
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
    def is_table(self) -> bool:
        return True
