"""Functions of regular expressions in Java syntax."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import pyarrow as pa

from potok.compat.java.regex import JavaPattern, compiled, matches
from potok.compat.java.time_limit import set_deadline
from potok.sql.budget import LARGEST_VALUE, PER_OBJECT, check_time, end_of_work, reserve
from potok.sql.functions.function import (
    Compute,
    Context,
    Overload,
    ScalarFunction,
    SqlFunction,
    each_row,
    large_value,
    takes,
)
from potok.sql.types import INT, VARCHAR, array

ROW_S = 1.0
"""The time limit per record."""
COLUMN_S = 5.0
"""The time limit for all slow records of a column together; after that, each gets at most `LEAST_S`."""
LEAST_S = 0.01


def each_text(function: Callable[..., Any]) -> Compute:
    """Return a row-by-row computation by a function that applies regular expressions."""

    def compute(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        left, over = COLUMN_S, end_of_work() or math.inf

        def timed(*given: Any) -> Any:
            nonlocal left
            began = time.monotonic()
            set_deadline(min(began + min(ROW_S, max(left, LEAST_S)), over))
            check_time()
            try:
                return function(*given)
            finally:
                set_deadline(None)
                took = time.monotonic() - began
                left -= took if took > LEAST_S / 2 else 0.0

        return each_row(timed)(arguments, rows, result, context)

    return compute


T = TypeVar("T")

_REFERENCE: Final = re.compile(r"\$(?:(\d)|\{([a-zA-Z][a-zA-Z0-9]*)\})?|\\(.)?", re.DOTALL)


def _extract(pattern: str, text: str, group: int = 0) -> str | None:
    expression = compiled(pattern)
    if group > expression.groups:
        return None
    found = expression.search(text)
    return found[_valid(group)] if found else None


def _extract_all(pattern: str, text: str, group: int = 0) -> list[str | None] | None:
    expression = compiled(pattern)
    if group > expression.groups:
        return None
    return _with_reserved_memory([found[_valid(group)] for found in matches(expression, text)])


def _with_reserved_memory(pieces: list[T]) -> list[T]:
    """Reserve memory for a list, because the lists of all rows are alive at the same time."""
    reserve(PER_OBJECT * len(pieces))
    return pieces


def _valid(group: int) -> int:
    if group < 0:
        raise ValueError(f"there is no group {group}")
    return group


def _replace(text: str, pattern: str, replacement: str) -> str:
    expression = compiled(pattern)
    pieces, at, size, parts = list[str](), 0, len(text), None
    for found in matches(expression, text):
        pieces.append(text[at : found.start()])
        parts = parts or _replacement(replacement, expression)
        made = "".join(part if isinstance(part, str) else found[part] or "" for part in parts)
        size += len(made)
        if size > LARGEST_VALUE:
            raise large_value()
        pieces.append(made)
        at = found.end()
    reserve(size)
    return "".join((*pieces, text[at:]))


def _replacement(text: str, expression: JavaPattern) -> tuple[str | int, ...]:
    return _short_replacement(text, expression) if len(text) <= 1_000 else _read_replacement(text, expression)


def _read_replacement(text: str, expression: JavaPattern) -> tuple[str | int, ...]:
    r"""Parse a replacement to text and group numbers: `$1`, `${name}`, and `\` before a literal character."""
    parts: list[str | int] = []
    at = 0
    while found := _REFERENCE.search(text, at):
        parts.append(text[at : found.start()])
        at = found.end()
        digit, name, escaped = found.groups()
        if escaped is not None:
            parts.append(escaped)
        elif name is not None:
            if name not in expression.groupindex:
                raise ValueError(f"there is no group {name}")
            parts.append(expression.groupindex[name])
        elif digit is not None:
            number, at = _group_number(text, found.start() + 1, expression.groups)
            parts.append(number)
        else:
            raise ValueError(f"'{text}' is not a replacement: write \\$ and \\\\ for the characters themselves")
    return (*parts, text[at:])


_short_replacement = lru_cache(maxsize=256)(_read_replacement)


def _group_number(text: str, start: int, groups: int) -> tuple[int, int]:
    """Parse as many digits as there are groups: $12 is group 1 and a 2 if there is no group 12."""
    end = start + 1
    while end < len(text) and text[end] in "0123456789" and int(text[start : end + 1]) <= groups:
        end += 1
    number = int(text[start:end])
    if number > groups:
        raise ValueError(f"there is no group {number}")
    return number, end


def _split(text: str, pattern: str) -> list[str]:
    expression = compiled(pattern)
    return _with_reserved_memory(
        _split_at_nothing(text, expression) if expression.fullmatch("") else _split_at(text, expression)
    )


def _split_at_nothing(text: str, expression: JavaPattern) -> list[str]:
    """Split by an expression that matches the empty string: no match at the start, and no empty pieces at the end."""
    pieces, at = list[str](), 0
    for found in matches(expression, text):
        if not found.start() == found.end() == at == 0:
            pieces.append(text[at : found.start()])
            at = found.end()
    if at == 0:
        return [text]
    pieces.append(text[at:])
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces


def _split_at(text: str, expression: JavaPattern) -> list[str]:
    """Split, keeping empty pieces. A zero-length match, such as a look-ahead, splits, except where a piece has just
    started."""
    pieces, begin, at = list[str](), 0, 0
    while at <= len(text) and (found := expression.search(text, at)):
        if found.end() == begin:
            at = begin + 1
            continue
        pieces.append(text[begin : found.start()])
        begin = at = found.end()
    return [*pieces, text[begin:]]


FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    ScalarFunction(
        "REGEXP_EXTRACT",
        "regex",
        "The first part of the text that matches the regular expression, or a group of it; NULL if there is none.",
        (
            Overload(
                "REGEXP_EXTRACT(pattern VARCHAR, text VARCHAR[, group INT])",
                takes(VARCHAR, VARCHAR, INT, result=VARCHAR, optional=1),
                each_text(_extract),
            ),
        ),
        example="REGEXP_EXTRACT('(.*) (.*)', 'hello there', 2)  -- 'there'",
    ),
    ScalarFunction(
        "REGEXP_EXTRACT_ALL",
        "regex",
        "All parts of the text that match the regular expression, or a group of each.",
        (
            Overload(
                "REGEXP_EXTRACT_ALL(pattern VARCHAR, text VARCHAR[, group INT])",
                takes(VARCHAR, VARCHAR, INT, result=array(VARCHAR), optional=1),
                each_text(_extract_all),
            ),
        ),
        example="REGEXP_EXTRACT_ALL('(\\w+) (\\w+)', 'hello there nice day', 2)  -- ['there', 'day']",
    ),
    ScalarFunction(
        "REGEXP_REPLACE",
        "regex",
        "The text with every match of the regular expression replaced; $1 and ${name} in the replacement are groups.",
        (
            Overload(
                "REGEXP_REPLACE(text VARCHAR, pattern VARCHAR, replacement VARCHAR)",
                takes(VARCHAR, VARCHAR, VARCHAR, result=VARCHAR),
                each_text(_replace),
            ),
        ),
        example="REGEXP_REPLACE('a1b22', '\\d+', '#')  -- 'a#b#'",
    ),
    ScalarFunction(
        "REGEXP_SPLIT_TO_ARRAY",
        "regex",
        "The pieces of the text between matches of the regular expression; each character if that is empty.",
        (
            Overload(
                "REGEXP_SPLIT_TO_ARRAY(text VARCHAR, pattern VARCHAR)",
                takes(VARCHAR, VARCHAR, result=array(VARCHAR)),
                each_text(_split),
            ),
        ),
        example="REGEXP_SPLIT_TO_ARRAY('a1b22c', '\\d+')  -- ['a', 'b', 'c']",
    ),
)
