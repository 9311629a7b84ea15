"""Windows as in Faust, as arguments of a table: `app.Table("clicks", default=int, window=TumblingWindow(60))`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from potok.faust.tables.tables import Table
    from potok.faust.tables.windowed import WindowedTable


@dataclass(frozen=True, slots=True)
class Window:
    """The length of a window, and its retention after its end; a timedelta, or seconds."""

    size: Any
    expires: Any = None

    def of(self, table: Table) -> WindowedTable:
        """Return a table with these windows."""
        return table.tumbling(self.size, self.expires)


@dataclass(frozen=True, slots=True)
class TumblingWindow(Window):
    """Windows that neither overlap nor leave gaps."""


@dataclass(frozen=True, slots=True, init=False)
class HoppingWindow(Window):
    """Windows that start every `step`, so that a record belongs to several."""

    step: Any = None

    def __init__(self, size: Any, step: Any, expires: Any = None) -> None:
        for name, value in (("size", size), ("step", step), ("expires", expires)):
            object.__setattr__(self, name, value)

    def of(self, table: Table) -> WindowedTable:
        return table.hopping(self.size, self.step, self.expires)
