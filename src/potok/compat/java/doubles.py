"""Doubles as text, as Java's `Double.toString` writes them."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7


def double_text(value: float) -> str:
    """A double as Java writes it: with a point, with an exponent from 1.0E7 on and below 0.001, and with no more digits
    than distinguish it, but at least two.

    >>> double_text(1e10), double_text(100.0), double_text(0.00012), double_text(5e-324)
    ('1.0E10', '100.0', '1.2E-4', '4.9E-324')
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        rendered = repr(value)
        return format(Decimal(rendered), "f") if "e" in rendered else rendered
    two_digits = f"{value:.1e}"
    sign, digits, exponent = Decimal(two_digits if float(two_digits) == value else repr(value)).as_tuple()
    kept = "".join(map(str, digits)).rstrip("0")
    power = len(digits) + int(exponent) - 1
    return f"{'-' * sign}{kept[0]}.{kept[1:] or '0'}E{power}"


def double_texts(column: pa.Array, texts: pa.Array) -> pa.Array:
    """Texts of doubles, with those replaced that Java writes with an exponent."""
    sizes = pc.abs(column.cast(pa.float64()))
    small = pc.and_(pc.less(sizes, _PLAIN_FROM), pc.greater(sizes, 0.0))
    odd = pc.or_(small, pc.greater_equal(sizes, _PLAIN_BELOW)).fill_null(False)
    if not pc.any(odd).as_py():
        return texts
    written = [double_text(value) for value in column.filter(odd).to_pylist()]
    return pc.replace_with_mask(texts, odd, pa.array(written, pa.string()))
