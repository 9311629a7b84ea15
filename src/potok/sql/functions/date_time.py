"""Functions of dates and times."""

from __future__ import annotations

from typing import Final

from potok.sql.functions import date_arithmetic, date_formats, date_parsing
from potok.sql.functions.function import SqlFunction

FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    *date_arithmetic.FUNCTIONS,
    *date_formats.FUNCTIONS,
    *date_parsing.FUNCTIONS,
)
