"""MASK and related functions: replace letters, digits and other characters by mask characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from potok.sql.functions.function import Overload, ScalarFunction, SqlFunction, each_row, takes
from potok.sql.types import INT, VARCHAR

_KINDS: Final = {"Lu": 0, "Ll": 1, "Nd": 2}
_OTHER: Final = 3
_DEFAULT: Final = ("X", "x", "n", "-")

Masks = tuple[str | None, str | None, str | None, str | None]


class _Table(dict[int, str]):
    """A table for `str.translate` that computes each character once."""

    def __init__(self, masks: Masks) -> None:
        super().__init__()
        self._masks = masks

    def __missing__(self, code: int) -> str:
        kind = _KINDS.get(unicodedata.category(chr(code)), _OTHER)
        self[code] = self._masks[kind] or chr(code)
        return self[code]


@lru_cache(maxsize=64)
def _table(masks: Masks) -> _Table:
    for mask in masks:
        if mask is not None and len(mask) != 1:
            raise ValueError(f"a mask is a single character, not '{mask}'")
    return _Table(masks)


Cut = Callable[[int, int], tuple[int, int]]
"""Returns where masking starts and ends, from the length of the string and the given number."""


def _masked(cut: Cut) -> Callable[..., str | None]:
    def mask(text: str | None, number: int | None = 0, *given: str | None) -> str | None:
        upper, lower, digit, other = given or _DEFAULT
        table = _table((upper, lower, digit, other))
        if text is None or number is None:
            return None
        if number < 0:
            raise ValueError(f"the number of characters is negative: {number}")
        start, end = cut(len(text), number)
        return text[:start] + text[start:end].translate(table) + text[end:]

    return mask


def _whole(text: str | None, *given: str | None) -> str | None:
    return _masked(lambda length, _: (0, length))(text, 0, *given)


def _function(name: str, cut: Cut, which: str, example: str) -> ScalarFunction:
    compute = each_row(_masked(cut), nulls=True)
    masks = "upper VARCHAR, lower VARCHAR, digit VARCHAR, other VARCHAR"
    return ScalarFunction(
        name,
        "text",
        f"As MASK, but of {which} only.",
        (
            Overload(f"{name}(text VARCHAR, n INT)", takes(VARCHAR, INT, result=VARCHAR), compute),
            Overload(
                f"{name}(text VARCHAR, n INT, {masks})",
                takes(VARCHAR, INT, *[VARCHAR] * 4, result=VARCHAR),
                compute,
            ),
        ),
        example=example,
    )


FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    ScalarFunction(
        "MASK",
        "text",
        "The text with a sign in place of each character: X for an upper case letter, x for a lower case one, n for a "
        "digit and - for all else, or the signs that are given; NULL leaves characters of that kind as they are.",
        (
            Overload("MASK(text VARCHAR)", takes(VARCHAR, result=VARCHAR), each_row(_whole, nulls=True)),
            Overload(
                "MASK(text VARCHAR, upper VARCHAR, lower VARCHAR, digit VARCHAR, other VARCHAR)",
                takes(*[VARCHAR] * 5, result=VARCHAR),
                each_row(_whole, nulls=True),
            ),
        ),
        example="MASK('My Test $123')  -- 'Xx-Xxxx--nnn'",
    ),
    _function(
        "MASK_KEEP_LEFT",
        lambda length, n: (min(n, length), length),
        "all but the first `n` characters",
        "MASK_KEEP_LEFT('My Test $123', 4)  -- 'My Txxx--nnn'",
    ),
    _function(
        "MASK_KEEP_RIGHT",
        lambda length, n: (0, max(0, length - n)),
        "all but the last `n` characters",
        "MASK_KEEP_RIGHT('My Test $123', 4)  -- 'Xx-Xxxx-$123'",
    ),
    _function(
        "MASK_LEFT",
        lambda length, n: (0, min(n, length)),
        "the first `n` characters",
        "MASK_LEFT('My Test $123', 4)  -- 'Xx-Xest $123'",
    ),
    _function(
        "MASK_RIGHT",
        lambda length, n: (max(0, length - n), length),
        "the last `n` characters",
        "MASK_RIGHT('My Test $123', 4)  -- 'My Test -nnn'",
    ),
)
