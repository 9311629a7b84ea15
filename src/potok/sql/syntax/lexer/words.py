"""Keywords: which are reserved, and which start or continue a clause."""

from __future__ import annotations

import re
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RESERVED: Final = _words(
    """
    ALL AND AS BETWEEN BY CASE CAST CREATE DELETE DESCRIBE DISTINCT DROP ELSE END EXISTS FALSE FROM FULL GROUP HAVING IN
    INNER INSERT INTO IS JOIN LEFT LIKE LIMIT LIST NOT NULL ON OR OUTER PRINT RIGHT SELECT STREAM TABLE TERMINATE THEN
    TOPIC TRUE UNSET VALUES WHEN WHERE WINDOW WITH WITHIN
    """
)
"""Reserved words, which must be quoted as names. ksqlDB reserves more; here, a word is a name wherever that is
unambiguous."""

CONSTRUCTORS: Final = frozenset({"ARRAY", "MAP", "STRUCT"})

CLAUSE_PAIRS: Final = frozenset(
    {("PARTITION", "BY"), ("ORDER", "BY"), ("EMIT", "CHANGES"), ("EMIT", "FINAL"), ("GRACE", "PERIOD")}
)
"""Words that may be names, and start a clause together with the word after them."""

QUOTED_TO_BE_SURE: Final = (
    RESERVED
    | CONSTRUCTORS
    | {first for first, _ in CLAUSE_PAIRS}
    | _words("COLUMN EXTENDED FUNCTION IF OF QUERY STREAMS TABLES")
)
"""Words that are always quoted as names, even where that is not necessary."""

UNLIKELY_NAMES: Final = RESERVED - _words(
    """
    ALL CREATE DELETE DESCRIBE DROP EXISTS FULL INSERT LEFT LIST OUTER PRINT RIGHT STREAM TABLE TERMINATE TOPIC UNSET
    VALUES
    """
)
"""Words that are unlikely to be names in place of a value: something before them is missing."""

UNIT_MS: Final = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
}
UNITS: Final = UNIT_MS | {f"{unit}S": ms for unit, ms in UNIT_MS.items()}

STATEMENTS: Final = (
    "SELECT",
    "CREATE",
    "ALTER",
    "DROP",
    "INSERT",
    "SHOW",
    "LIST",
    "DESCRIBE",
    "EXPLAIN",
    "PRINT",
    "TERMINATE",
    "PAUSE",
    "RESUME",
    "SET",
    "UNSET",
    "DEFINE",
    "UNDEFINE",
    "RUN",
    "ASSERT",
)
"""The words that start a statement."""

CLAUSES: Final = ("FROM", "WINDOW", "WHERE", "GROUP BY", "PARTITION BY", "HAVING", "ORDER BY", "EMIT", "LIMIT")
"""The clauses of a query, in their required order."""

_PLAIN: Final = re.compile(r"[A-Z_][A-Z0-9_@]*")


def quoted(name: str) -> str:
    """Quote a name for a statement: in backticks unless it is plain upper case and not reserved."""
    plain = _PLAIN.fullmatch(name) and name not in QUOTED_TO_BE_SURE
    return name if plain else "`" + name.replace("`", "``") + "`"
