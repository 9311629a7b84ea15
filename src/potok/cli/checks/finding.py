"""A line of the report of `potok doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `status` is ok, warn or fail."""

    what: str
    status: str
    detail: str
    hint: str = ""
