"""Records: their values, declared types and formats.

Only the names that load without Arrow are exported; `schema`, `rows`, `keys` and `formats` are imported by module.
"""

from __future__ import annotations

from potok.records.record import Record
from potok.records.value import Value, wrap

__all__ = ["Record", "Value", "wrap"]


def __dir__() -> list[str]:
    return sorted(__all__)
