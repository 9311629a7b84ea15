"""The words of SQL, for completion and highlighting."""

from __future__ import annotations

from typing import Final

from potok.sql.syntax.words import CLAUSES, RESERVED, STATEMENTS, UNITS
from potok.sql.types import SPELLINGS

TYPES: Final = frozenset({*SPELLINGS, "DECIMAL", "ARRAY", "MAP", "STRUCT"})

_OTHERS: Final = """
    ADD ADVANCE ALTER BEGINNING CHANGES COLUMN DEFINE EMIT ESCAPE EXPLAIN EXTENDED FINAL FUNCTION FUNCTIONS GRACE HEADER
    HEADERS HOPPING IF INTERVAL KEY OF ORDER PARTITION PAUSE PERIOD PRIMARY PROPERTIES QUERIES REPLACE RESUME RETENTION
    RUN SCRIPT SESSION SET SHOW SIZE SOURCE STREAMS TABLES TIMEOUT TOPICS TUMBLING TYPE TYPES UNDEFINE VARIABLES ASSERT
    ASC DESC DISTINCT
"""

KEYWORDS: Final = RESERVED | frozenset(_OTHERS.split()) | frozenset(STATEMENTS) | frozenset(UNITS)

LISTED: Final = ("STREAMS", "TABLES", "TOPICS", "QUERIES", "FUNCTIONS", "TYPES", "VARIABLES", "PROPERTIES")
"""Objects of SHOW and LIST."""

FOLLOWERS: Final = {
    "SHOW": (*LISTED, "ALL TOPICS"),
    "LIST": (*LISTED, "ALL TOPICS"),
    "CREATE": ("STREAM", "TABLE", "OR REPLACE", "SOURCE STREAM", "SOURCE TABLE", "TYPE"),
    "REPLACE": ("STREAM", "TABLE", "SOURCE STREAM", "SOURCE TABLE"),
    "DROP": ("STREAM", "TABLE", "TYPE"),
    "ALTER": ("STREAM", "TABLE"),
    "INSERT": ("INTO",),
    "ASSERT": ("TOPIC", "NOT EXISTS TOPIC"),
    "RUN": ("SCRIPT",),
    "EMIT": ("CHANGES", "FINAL"),
    "WINDOW": ("TUMBLING (SIZE", "HOPPING (SIZE", "SESSION ("),
    "GROUP": ("BY",),
    "PARTITION": ("BY",),
    "ORDER": ("BY",),
    "GRACE": ("PERIOD",),
    "PRIMARY": ("KEY",),
    "IS": ("NULL", "NOT NULL", "DISTINCT FROM", "NOT DISTINCT FROM"),
    "SOURCE": ("STREAM", "TABLE"),
    "LEFT": ("JOIN",),
    "RIGHT": ("JOIN",),
    "FULL": ("JOIN",),
    "INNER": ("JOIN",),
    "OUTER": ("JOIN",),
}
"""Words that must be followed by one of these."""

IN_QUERIES: Final = (
    *CLAUSES,
    *("AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "AS", "CASE", "WHEN", "THEN", "ELSE", "END", "NULL"),
    *("TRUE", "FALSE", "CAST(", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "INNER JOIN", "ON", "WITHIN"),
    *("EMIT CHANGES", "EMIT FINAL", "GRACE PERIOD", "AS OF", "VALUES", "SELECT", "WITH (", "DELETE TOPIC", "EXTENDED"),
    *("TUMBLING", "HOPPING", "SESSION", "SIZE", "ADVANCE BY", "RETENTION", "ARRAY[", "MAP(", "STRUCT(", "DESC"),
    *("FROM BEGINNING", "PRIMARY KEY", "KEY", "HEADERS", "HEADER(", *sorted(UNITS)),
)
"""Keywords inside a statement."""
