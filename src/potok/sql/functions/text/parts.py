"""Functions that search, slice, split and pad strings and bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions import sizes
from potok.sql.functions.constants import constant, is_ascii
from potok.sql.functions.function import Compute, Context, Overload, ScalarFunction, SqlFunction, each_row, takes
from potok.sql.types import BYTES, INT, VARCHAR, array, map_of

LONGEST: Final = 16 * 1024 * 1024
"""The maximum length for LPAD and RPAD: a length may come from a record, and must not exhaust the memory."""


def _position(text: str | None, part: str | None, position: int | None = 1, occurrence: int | None = 1) -> int | None:
    if position is None or occurrence is None:
        return None
    if text is None or part is None or position == 0 or abs(position) > len(text):
        return 0
    if position > 0:
        return _nth(text, part, position - 1, occurrence) + 1
    found = _nth(text[::-1], part[::-1], -position - 1, occurrence)
    return 0 if found < 0 else len(text) - found - len(part) + 1


def _nth(text: str, part: str, start: int, occurrence: int) -> int:
    """Return where an occurrence starts, -1 if there is none; occurrences may overlap."""
    if occurrence <= 0:
        return -1
    if not part:
        return start
    found = start - 1
    for _ in range(occurrence):
        found = text.find(part, found + 1)
        if found < 0:
            return -1
    return found


def _instr(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
    column, part = arguments[0], constant(arguments[1])
    if part and len(arguments) == 2 and is_ascii(column):
        return pc.add(pc.find_substring(column, pattern=part).fill_null(-1), pa.scalar(1, INT)).cast(result)
    return each_row(_position, nulls=True)(arguments, rows, result, context)


def _cut(value: Any, position: int, length: int | None = None) -> Any:
    start = max(len(value) + position, 0) if position < 0 else max(position - 1, 0)
    return value[start:] if length is None else value[start : start + max(length, 0)]


def _substring(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
    column, position = arguments[0], constant(arguments[1])
    length = constant(arguments[2]) if len(arguments) > 2 else None
    if position is None or (len(arguments) > 2 and length is None):
        return each_row(_cut)(arguments, rows, result, context)
    rest = pc.utf8_slice_codeunits(column, position if position < 0 else max(position - 1, 0))
    # In two steps, because a position before the first character counts as the first.
    return rest if length is None else pc.utf8_slice_codeunits(rest, 0, max(length, 0))


def _padded(left: bool) -> Callable[[Any, int, Any], Any]:
    def pad(value: Any, length: int, padding: Any) -> Any:
        if length < 0 or not padding:
            return None
        if length > LONGEST:
            raise ValueError(f"{length} is more than the {LONGEST} that can be filled up")
        missing = max(length - len(value), 0)
        filling = (padding * (missing // len(padding) + 1))[:missing]
        return (filling + value if left else value + filling)[:length]

    return pad


def _pad(kernel: Callable[..., pa.Array], left: bool) -> Compute:
    def compute(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        column, length, padding = arguments[0], constant(arguments[1]), constant(arguments[2])
        if result == VARCHAR and length is not None and 0 <= length <= LONGEST and padding and len(padding) == 1:
            return pc.utf8_slice_codeunits(kernel(column, width=length, padding=padding), 0, length)
        return each_row(_padded(left))(arguments, rows, result, context)

    return compute


def _split(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
    delimiter = constant(arguments[1])
    if delimiter:
        return pc.split_pattern(arguments[0], pattern=delimiter).cast(result)
    return each_row(_pieces)(arguments, rows, result, context)


def _pieces(value: Any, delimiter: Any) -> list[Any]:
    if delimiter:
        return list(value.split(delimiter))
    return [value[i : i + 1] for i in range(len(value))] or [value]


def _split_to_map(text: str, entries: str, within: str) -> list[tuple[str, str]] | None:
    if not entries or not within or entries == within:
        return None
    pairs = (entry.split(within) for entry in text.split(entries) if within in entry)
    return list({pair[0]: pair[1] for pair in pairs}.items())


def _of_both(
    name: str, parameters: str, accepted: tuple[pa.DataType, ...], computes: tuple[Compute, Compute], size: Any = None
) -> Any:
    """Return the overloads for strings and bytes; VARCHAR in the types and in the signature is replaced for both."""
    optional = 1 if "[" in parameters else 0
    return tuple(
        Overload(
            f"{name}({parameters.replace('VARCHAR', type_)})",
            takes(*(kind if each == VARCHAR else each for each in accepted), result=kind, optional=optional),
            compute,
            size=size,
        )
        for type_, kind, compute in zip(("VARCHAR", "BYTES"), (VARCHAR, BYTES), computes, strict=True)
    )


FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    ScalarFunction(
        "INSTR",
        "text",
        "The position of `part` in the text, or of its n-th occurrence; 0 if there is none. The search begins at "
        "`position`, and goes from the end to the beginning if that is negative.",
        (
            Overload(
                "INSTR(text VARCHAR, part VARCHAR[, position INT[, occurrence INT]])",
                takes(VARCHAR, VARCHAR, INT, INT, result=INT, optional=2),
                _instr,
            ),
        ),
        example="INSTR('CORPORATE FLOOR', 'OR', 3, 2)  -- 14",
    ),
    ScalarFunction(
        "LPAD",
        "text",
        "The text, or bytes, filled up from the left to a length, or truncated to it. NULL if the padding is empty or "
        "the length negative.",
        _of_both(
            "LPAD",
            "value VARCHAR, length INT, padding VARCHAR",
            (VARCHAR, INT, VARCHAR),
            (_pad(pc.utf8_lpad, True), each_row(_padded(True))),
            sizes.padded(LONGEST),
        ),
        example="LPAD('Foo', 7, 'Bar')  -- 'BarBFoo'",
    ),
    ScalarFunction(
        "RPAD",
        "text",
        "The text, or bytes, filled up from the right to a length, or truncated to it. NULL if the padding is empty or "
        "the length negative.",
        _of_both(
            "RPAD",
            "value VARCHAR, length INT, padding VARCHAR",
            (VARCHAR, INT, VARCHAR),
            (_pad(pc.utf8_rpad, False), each_row(_padded(False))),
            sizes.padded(LONGEST),
        ),
        example="RPAD('Foo', 7, 'Bar')  -- 'FooBarB'",
    ),
    ScalarFunction(
        "SPLIT",
        "text",
        "The pieces of a text, or of bytes, between delimiters; each character, or byte, if the delimiter is empty.",
        (
            Overload(
                "SPLIT(text VARCHAR, delimiter VARCHAR)",
                takes(VARCHAR, VARCHAR, result=array(VARCHAR)),
                _split,
                size=sizes.pieces,
            ),
            Overload(
                "SPLIT(bytes BYTES, delimiter BYTES)",
                takes(BYTES, BYTES, result=array(BYTES)),
                _split,
                size=sizes.pieces,
            ),
        ),
        example="SPLIT('a.b', '.')  -- ['a', 'b']",
    ),
    ScalarFunction(
        "SPLIT_TO_MAP",
        "text",
        "The entries of a text as a map: `entries` separates them, `within` between key and value. Of several "
        "with one key the last counts; one without `within` does not. NULL if the delimiters are empty or the same.",
        (
            Overload(
                "SPLIT_TO_MAP(text VARCHAR, entries VARCHAR, within VARCHAR)",
                takes(VARCHAR, VARCHAR, VARCHAR, result=map_of(VARCHAR, VARCHAR)),
                each_row(_split_to_map),
            ),
        ),
        example="SPLIT_TO_MAP('a:=1/b:=2', '/', ':=')  -- {'a': '1', 'b': '2'}",
    ),
    ScalarFunction(
        "SUBSTRING",
        "text",
        "The part of a text, or of bytes, from a position on, or so much of it. A negative position counts from the "
        "end.",
        _of_both(
            "SUBSTRING",
            "value VARCHAR, position INT[, length INT]",
            (VARCHAR, INT, INT),
            (_substring, each_row(_cut)),
        ),
        example="SUBSTRING('stream', 1, 4)  -- 'stre'",
    ),
)
