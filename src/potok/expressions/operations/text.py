"""String methods. Arrow has its own Unicode tables, so where these matter only ASCII rows are exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.expr import Call, Expr
from potok.expressions.operations.operation import Operation, Typed, Vectorised, always
from potok.expressions.python_types import Family, family
from potok.expressions.tracing.refusal import NotTraceable
from potok.expressions.vectorised.vector import Data, Mask, Vector, either, required, where

WHITESPACE: Final = "".join(
    map(chr, [*range(0x09, 0x0E), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)])
) + ("\u2028\u2029\u202f\u205f\u3000")
"""What Python's `strip()` and `split()` take for whitespace."""

_TEXT: Final[frozenset[Family]] = frozenset({"string"})


def _not_ascii(data: Data) -> Mask:
    return where(pc.invert(pc.string_is_ascii(data)))


def _ascii(kernel: Callable[..., Data]) -> Vectorised:
    def vector(vectors: Sequence[Vector], _: Call) -> Vector:
        (text,) = vectors
        return Vector(kernel(text.data), either(required(text), _not_ascii(text.data)))

    return vector


def _exact(kernel: Callable[..., Data]) -> Vectorised:
    """An operation with the same result on UTF-8 bytes as on code points."""

    def vector(vectors: Sequence[Vector], call: Call) -> Vector:
        (text,) = vectors
        return Vector(kernel(text.data, *call.options), required(text))

    return vector


def _constants(result: pa.DataType, *kinds: type, least: int) -> Typed:
    """Return a type rule for constant options of these kinds, of which the first `least` are required."""

    def typed(args: Sequence[Expr], given: tuple[object, ...]) -> pa.DataType:
        right = all(type(option) is kind for option, kind in zip(given, kinds, strict=False))
        if len(args) != 1 or not least <= len(given) <= len(kinds) or not right:
            raise NotTraceable("a string method is traced only with constant arguments of the usual types")
        if any(isinstance(option, str) and not _encodable(option) for option in given):
            raise NotTraceable("the text is not valid Unicode")
        return result

    return typed


def _encodable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _not_empty(rule: Typed) -> Typed:
    """Python treats an empty search text specially, or raises."""

    def typed(args: Sequence[Expr], given: tuple[object, ...]) -> pa.DataType:
        if given and given[0] == "":
            raise NotTraceable("an empty text to search for is not traced")
        return rule(args, given)

    return typed


def _affix(_: Sequence[Expr], given: tuple[object, ...]) -> pa.DataType:
    wanted = given[0] if len(given) == 1 else None
    texts = wanted if isinstance(wanted, tuple) else (wanted,)
    if not texts or not all(type(text) is str and _encodable(text) for text in texts):
        raise NotTraceable("startswith and endswith are traced only with a constant text or a tuple of them")
    return pa.bool_()


def _any_affix(kernel: Callable[..., Data]) -> Callable[..., Data]:
    def matches(text: Data, wanted: str | tuple[str, ...]) -> Data:
        first, *rest = wanted if isinstance(wanted, tuple) else (wanted,)
        found = kernel(text, pattern=first)
        for affix in rest:
            found = pc.or_(found, kernel(text, pattern=affix))
        return found

    return matches


def _strip(kernel: Callable[..., Data]) -> Callable[..., Data]:
    return lambda text, characters=WHITESPACE: kernel(text, characters=characters)


def _replace(text: Data, old: str, new: str, count: int = -1) -> Data:
    return pc.replace_substring(text, pattern=old, replacement=new, max_replacements=None if count < 0 else count)


def _split(text: Data, separator: str | None = None, limit: int = -1) -> Data:
    if separator is not None:
        return pc.split_pattern(text, pattern=separator, max_splits=None if limit < 0 else limit)
    trimmed = pc.utf8_trim(text, characters=WHITESPACE)
    words = pc.utf8_split_whitespace(trimmed)
    return pc.if_else(pc.equal(pc.binary_length(trimmed), 0), pa.scalar([], words.type), words)


def _split_type(args: Sequence[Expr], given: tuple[object, ...]) -> pa.DataType:
    words = pa.list_(pa.string())
    return words if not given else _not_empty(_constants(words, str, int, least=1))(args, given)


def _int64(kernel: Callable[..., Data]) -> Callable[..., Data]:
    return lambda text, pattern: kernel(text, pattern=pattern).cast(pa.int64())


def _concat_type(args: Sequence[Expr], _: tuple[object, ...]) -> pa.DataType:
    if any(family(arg.type) != "string" for arg in args):
        raise NotTraceable("concat of anything but strings raises TypeError")
    return pa.string()


def _concat(vectors: Sequence[Vector], _: Call) -> Vector:
    return Vector(pc.binary_join_element_wise(*(vector.data for vector in vectors), ""), required(*vectors))


_CASE: Final = {
    "upper": pc.ascii_upper,
    "lower": pc.ascii_lower,
    "title": pc.ascii_title,
    "capitalize": pc.ascii_capitalize,
    "swapcase": pc.ascii_swapcase,
}
_PREDICATES: Final = {
    "isdigit": pc.ascii_is_decimal,
    "isalpha": pc.ascii_is_alpha,
    "isalnum": pc.ascii_is_alnum,
    "isupper": pc.ascii_is_upper,
    "islower": pc.ascii_is_lower,
}
_STRIPS: Final = {"strip": pc.utf8_trim, "lstrip": pc.utf8_ltrim, "rstrip": pc.utf8_rtrim}
_AFFIXES: Final = {"startswith": pc.starts_with, "endswith": pc.ends_with}


def _method(name: str, typed: Typed, vector: Vectorised, *parameters: str) -> Operation:
    return Operation(name, "method", _TEXT, typed, vector, parameters)


TEXT_OPERATIONS: Final = (
    *(_method(name, always(pa.string()), _ascii(kernel)) for name, kernel in _CASE.items()),
    *(_method(name, always(pa.bool_()), _ascii(kernel)) for name, kernel in _PREDICATES.items()),
    *(_method(name, _constants(pa.string(), str, least=0), _exact(_strip(kernel))) for name, kernel in _STRIPS.items()),
    *(_method(name, _affix, _exact(_any_affix(kernel))) for name, kernel in _AFFIXES.items()),
    _method("replace", _not_empty(_constants(pa.string(), str, str, int, least=2)), _exact(_replace)),
    _method("split", _split_type, _exact(_split), "sep", "maxsplit"),
    _method("count", _not_empty(_constants(pa.int64(), str, least=1)), _exact(_int64(pc.count_substring))),
    Operation("concat", "function", _TEXT, _concat_type, _concat),
)
