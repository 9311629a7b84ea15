"""Classify the statements in the binary log: what they do to captured tables beyond rows."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Effect = Literal["begin", "commit", "rollback", "truncate", "removes rows", "alters", "writes rows", "nothing"]

_COMMENT = re.compile(r"\s*(?:/\*(?![M!]).*?\*/|(?:--\s|#)[^\n]*(?:\n|$))", re.DOTALL)
_NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_TABLE = rf"({_NAME})(?:\s*\.\s*({_NAME}))?"
_OPTIONS = r"(?:IF\s+EXISTS\s+)?"
_TRUNCATE = re.compile(rf"TRUNCATE\s+(?:TABLE\s+)?{_TABLE}", re.IGNORECASE)
_ALTER = re.compile(rf"ALTER\s+(?:ONLINE\s+|OFFLINE\s+)?(?:IGNORE\s+)?TABLE\s+{_OPTIONS}{_TABLE}", re.IGNORECASE)
_REPLACED = re.compile(rf"CREATE\s+OR\s+REPLACE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_TABLE}", re.IGNORECASE)
_DROP = re.compile(rf"DROP\s+TABLES?\s+{_OPTIONS}(.*)", re.IGNORECASE | re.DOTALL)
_RENAME = re.compile(rf"RENAME\s+TABLES?\s+{_OPTIONS}(.*)", re.IGNORECASE | re.DOTALL)
_DROP_DATABASE = re.compile(rf"DROP\s+(?:DATABASE|SCHEMA)\s+{_OPTIONS}({_NAME})", re.IGNORECASE)
_TABLES = re.compile(_TABLE)
_ROWS_GO = re.compile(
    r"\b(?:(?:DROP|TRUNCATE|EXCHANGE|CONVERT)\s+PARTITION|(?:DISCARD|IMPORT)\s+\S*\s*TABLESPACE"
    r"|RENAME\s+(?!COLUMN\b|INDEX\b|KEY\b))",
    re.IGNORECASE,
)
_WRITES = ("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "CALL", "MERGE")


@dataclass(frozen=True, slots=True)
class Statement:
    """What a statement does, and to which captured tables."""

    effect: Effect
    tables: tuple[str, ...] = ()


_NOTHING = Statement("nothing")


def classify(text: str, database: str, captured: Collection[str]) -> Statement:
    """Return what a statement of the binary log means for tables, which are given as `database.table`.

    >>> classify("truncate users", "shop", ["shop.users"])
    Statement(effect='truncate', tables=('shop.users',))
    """
    while (comment := _COMMENT.match(text)) is not None:
        text = text[comment.end() :]
    text = text.strip()
    word = text[:16].split(None, 1)[0].upper().rstrip(";") if text else ""
    if word == "BEGIN":
        return Statement("begin")
    if word == "COMMIT":
        return Statement("commit")
    if word == "ROLLBACK":
        return _NOTHING if re.match(r"ROLLBACK\s+(?:WORK\s+)?TO\b", text, re.IGNORECASE) else Statement("rollback")
    if word in _WRITES:
        lowered = text.lower()
        named = [each for each in captured if each.partition(".")[2].lower() in lowered]
        return Statement("writes rows", tuple(named)) if named else _NOTHING
    found = _change_of(text, database)
    if found is None:
        return _NOTHING
    effect, names = found
    known = {each.lower(): each for each in captured}
    if effect == "removes rows" and names and names[0].endswith("."):
        hit = [each for lowered, each in known.items() if lowered.startswith(names[0])]
    else:
        hit = [known[name] for name in names if name in known]
    return Statement(effect, tuple(hit)) if hit else _NOTHING


def _change_of(text: str, database: str) -> tuple[Effect, list[str]] | None:
    """Return the effect of a definition, and the tables in lower case; a whole database ends with a dot."""
    if (found := _TRUNCATE.match(text)) is not None:
        return "truncate", [_full(found, database)]
    if (found := _ALTER.match(text)) is not None:
        effect: Effect = "removes rows" if _ROWS_GO.search(_without_literals(text[found.end() :])) else "alters"
        return effect, [_full(found, database)]
    if (found := _REPLACED.match(text)) is not None:
        return "removes rows", [_full(found, database)]
    if (found := _DROP.match(text) or _RENAME.match(text)) is not None:
        return "removes rows", [_full(each, database) for each in _TABLES.finditer(_without_comments(found[1]))]
    if (found := _DROP_DATABASE.match(text)) is not None:
        return "removes rows", [f"{_plain(found[1])}."]
    return None


def _full(found: re.Match[str], database: str) -> str:
    first, second = found[1], found[2]
    return f"{database.lower()}.{_plain(first)}" if second is None else f"{_plain(first)}.{_plain(second)}"


def _plain(name: str) -> str:
    return (name[1:-1].replace("``", "`") if name.startswith("`") else name).lower()


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def _without_literals(text: str) -> str:
    """Remove quoted texts: a default value may read like a statement."""
    return re.sub(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`", " ", text)
