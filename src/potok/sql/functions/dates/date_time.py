"""Functions of dates and times."""

from __future__ import annotations

from typing import Final

from potok.sql.functions.dates import arithmetic, formats, parsing
from potok.sql.functions.function import SqlFunction

FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    *arithmetic.FUNCTIONS,
    *formats.FUNCTIONS,
    *parsing.FUNCTIONS,
)
