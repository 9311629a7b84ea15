"""Functions of text. Characters are Unicode code points, and positions count from 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions import sizes
from potok.sql.functions.constants import constant, is_ascii
from potok.sql.functions.function import (
    Compute,
    Context,
    Overload,
    ScalarFunction,
    SqlFunction,
    by_arrow,
    each_row,
    takes,
    takes_many,
)
from potok.sql.functions.text import codes, masks, parts
from potok.sql.types import BYTES, INT, VARCHAR

_WORD: Final = re.compile(r"[^ \t\n\x0b\f\r]+[ \t\n\x0b\f\r]*")
_BLANKS: Final = "".join(map(chr, range(0x21)))
"""What Java's trim() removes: also control characters, but no other Unicode spaces."""


def _cased(kernel: Callable[[pa.Array], pa.Array], one: Callable[[str], str]) -> Compute:
    """Use Arrow for ASCII; beyond it, Arrow only has the simple case mapping, which does not convert ß to SS."""

    def compute(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        if is_ascii(arguments[0]):
            return kernel(arguments[0])
        return each_row(one)(arguments, rows, result, context)

    return compute


def _capitals(text: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in _WORD.findall(text.lower()))


def _concat(*columns: pa.Array) -> pa.Array:
    nothing = b"" if columns[0].type == BYTES else ""
    separator = pa.scalar(nothing, columns[0].type)
    return pc.binary_join_element_wise(*columns, separator, null_handling="replace", null_replacement=nothing)


def _concat_with(separator: pa.Array, *columns: pa.Array) -> pa.Array:
    nothing = pa.scalar(b"" if separator.type == BYTES else "", separator.type)
    # Arrow drops a row with nothing to join; use an empty first column there.
    bare = reduce(pc.and_, (column.is_null() for column in columns))
    first = pc.if_else(bare, nothing, columns[0])
    return pc.binary_join_element_wise(first, *columns[1:], separator, null_handling="skip")


def _replace(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
    column, old, new = arguments[0], constant(arguments[1]), constant(arguments[2])
    if old and new is not None:
        return pc.replace_substring(column, pattern=old, replacement=new)
    return each_row(str.replace)(arguments, rows, result, context)


def _field(text: str | None, *others: str | None) -> int:
    return others.index(text) + 1 if text is not None and text in others else 0


def _elt(number: int | None, *others: str | None) -> str | None:
    return others[number - 1] if number is not None and 1 <= number <= len(others) else None


_OTHERS: Final = (
    ScalarFunction(
        "CONCAT",
        "text",
        "The texts, or bytes, one behind the other; NULL counts as empty.",
        (
            Overload(
                "CONCAT(text VARCHAR, ...)",
                takes_many(VARCHAR, result=VARCHAR, least=2),
                by_arrow(_concat),
                size=sizes.one_behind_the_other,
            ),
            Overload(
                "CONCAT(bytes BYTES, ...)",
                takes_many(BYTES, result=BYTES, least=2),
                by_arrow(_concat),
                size=sizes.one_behind_the_other,
            ),
        ),
        example="CONCAT('a', NULL, 'b')  -- 'ab'",
    ),
    ScalarFunction(
        "CONCAT_WS",
        "text",
        "The texts, or bytes, that are not NULL, with a separator between them; NULL if the separator is.",
        (
            Overload(
                "CONCAT_WS(separator VARCHAR, text VARCHAR, ...)",
                takes_many(VARCHAR, VARCHAR, result=VARCHAR),
                by_arrow(_concat_with),
                size=sizes.with_separator,
            ),
            Overload(
                "CONCAT_WS(separator BYTES, bytes BYTES, ...)",
                takes_many(BYTES, BYTES, result=BYTES),
                by_arrow(_concat_with),
                size=sizes.with_separator,
            ),
        ),
        example="CONCAT_WS(', ', 'apple', NULL, 'date')  -- 'apple, date'",
    ),
    ScalarFunction(
        "ELT",
        "text",
        "The text at position `n` among those that follow; NULL if there are not so many.",
        (
            Overload(
                "ELT(n INT, text VARCHAR, ...)",
                takes_many(INT, VARCHAR, result=VARCHAR),
                each_row(_elt, nulls=True),
            ),
        ),
        example="ELT(2, 'a', 'b')  -- 'b'",
    ),
    ScalarFunction(
        "FIELD",
        "text",
        "The position of a text among those that follow; 0 if it is not there, or NULL.",
        (
            Overload(
                "FIELD(text VARCHAR, other VARCHAR, ...)",
                takes_many(VARCHAR, VARCHAR, result=INT),
                each_row(_field, nulls=True),
            ),
        ),
        example="FIELD('b', 'a', 'b')  -- 2",
    ),
    ScalarFunction(
        "INITCAP",
        "text",
        "Every word with a capital and the rest in lower case. Words end at white space; text before the first "
        "one is left out.",
        (Overload("INITCAP(text VARCHAR)", takes(VARCHAR, result=VARCHAR), each_row(_capitals), size=sizes.words),),
        example="INITCAP('the LAST word')  -- 'The Last Word'",
    ),
    ScalarFunction(
        "LCASE",
        "text",
        "The text in lower case.",
        (Overload("LCASE(text VARCHAR)", takes(VARCHAR, result=VARCHAR), _cased(pc.ascii_lower, str.lower)),),
        example="LCASE('ABC')  -- 'abc'",
    ),
    ScalarFunction(
        "LEN",
        "text",
        "How many characters a text has, or how many bytes there are.",
        (
            Overload("LEN(text VARCHAR)", takes(VARCHAR, result=INT), by_arrow(pc.utf8_length)),
            Overload("LEN(bytes BYTES)", takes(BYTES, result=INT), by_arrow(pc.binary_length)),
        ),
        example="LEN('stream')  -- 6",
    ),
    ScalarFunction(
        "REPLACE",
        "text",
        "The text with every occurrence of `old` replaced by `new`.",
        (
            Overload(
                "REPLACE(text VARCHAR, old VARCHAR, new VARCHAR)",
                takes(VARCHAR, VARCHAR, VARCHAR, result=VARCHAR),
                _replace,
                size=sizes.replaced,
            ),
        ),
        example="REPLACE('a-b-c', '-', '+')  -- 'a+b+c'",
    ),
    ScalarFunction(
        "TRIM",
        "text",
        "The text without blanks and control characters at its ends.",
        (
            Overload(
                "TRIM(text VARCHAR)",
                takes(VARCHAR, result=VARCHAR),
                by_arrow(lambda text: pc.utf8_trim(text, characters=_BLANKS)),
            ),
        ),
        example="TRIM('  a ')  -- 'a'",
    ),
    ScalarFunction(
        "UCASE",
        "text",
        "The text in upper case.",
        (Overload("UCASE(text VARCHAR)", takes(VARCHAR, result=VARCHAR), _cased(pc.ascii_upper, str.upper)),),
        example="UCASE('abc')  -- 'ABC'",
    ),
)

FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    *_OTHERS,
    *parts.FUNCTIONS,
    *masks.FUNCTIONS,
    *codes.FUNCTIONS,
)
