"""The reference page of the functions, made from the table that SQL itself looks them up in.

python -m potok.sql.functions.reference > docs/sql-functions.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from potok.sql.functions.function import AggregateFunction, ScalarFunction, SqlFunction, TableFunction
from potok.sql.functions.registry import all_functions

_HEADINGS: Final = {
    "math": "Numbers",
    "text": "Text",
    "regex": "Regular expressions",
    "url": "URLs",
    "bytes": "Bytes",
    "date_time": "Dates and times",
    "json": "JSON",
    "geo": "Places",
    "null": "NULL",
    "array": "Arrays",
    "map": "Maps",
    "lambda": "Lambdas",
    "aggregate": "Aggregates",
    "table": "Table functions",
}

_INTRODUCTION: Final = """\
# The functions of SQL

{scalar} scalar functions, {aggregate} aggregates and {table} table functions: all of ksqlDB's, by the same names and
with the same meaning. Numbers widen where a wider type is asked for: INT, BIGINT, DECIMAL, DOUBLE. Square brackets
stand around what may be left out, and dots where more of the same may follow.

Unless it is said otherwise, a function of NULL is NULL. A row for which a function cannot be computed (text that is no
URL, a regular expression that is none) gets NULL too, and the query notes why. Texts count in characters, which are
Unicode code points: ksqlDB counts a character beyond the first 65,536 as two.

Regular expressions are those of Java, except for `\\G`, `\\X`, the flag `U`, scripts and blocks of Unicode, and
look-behind of varying length: these are refused, and ranges such as `[\\u0400-\\u04FF]` say the same as blocks.

This page is made by `python -m potok.sql.functions.reference`.
"""


def page(functions: Iterable[SqlFunction] | None = None) -> str:
    """The whole page, as Markdown; of all functions that come with SQL, if none are given."""
    families: dict[str, list[SqlFunction]] = {}
    for function in sorted(all_functions().values() if functions is None else functions, key=lambda each: each.name):
        families.setdefault(function.family, []).append(function)
    everything = [function for family in families.values() for function in family]
    parts = [
        _INTRODUCTION.format(
            scalar=_count(everything, ScalarFunction),
            aggregate=_count(everything, AggregateFunction),
            table=_count(everything, TableFunction),
        ),
        *(f"- [{_heading(name)}](#{_anchor(name)}): {_names(families[name])}" for name in _in_order(families)),
    ]
    for name in _in_order(families):
        parts += [f"\n## {_heading(name)}", *map(_entry, families[name])]
    return "\n".join(parts) + "\n"


def _entry(function: SqlFunction) -> str:
    lines = [overload.signature for overload in function.overloads]
    example = f"\n```sql\n{function.example}\n```\n" if function.example else ""
    signatures = "\n".join(lines)
    return f"\n### {function.name}\n\n```text\n{signatures}\n```\n\n{function.summary}\n{example}".rstrip("\n")


def _in_order(families: Iterable[str]) -> list[str]:
    order = list(_HEADINGS)
    return sorted(families, key=lambda name: (order.index(name) if name in order else len(order), name))


def _heading(family: str) -> str:
    return _HEADINGS.get(family, family.capitalize())


def _anchor(family: str) -> str:
    return _heading(family).lower().replace(" ", "-")


def _names(functions: Iterable[SqlFunction]) -> str:
    return ", ".join(f"[{function.name}](#{function.name.lower()})" for function in functions)


def _count(functions: Iterable[SqlFunction], kind: type) -> int:
    return sum(isinstance(function, kind) for function in functions)


if __name__ == "__main__":
    sys.stdout.write(page())
