"""Derive the result type of a function by resolving its overloads with sample types.

Type variables of a signature, such as the T of `ARRAY<T>`, are represented by types that occur nowhere else in it; if
one of these is in the result, the variable is shown.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from potok.sql.functions.function import AggregateOverload, LambdaShape, Overload, SqlFunction, TableFunction
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script
from potok.sql.syntax.type_names import resolve
from potok.sql.types import DATE, INT, TIME, TIMESTAMP, VARCHAR, decimal, type_name

Letters = Mapping[str, pa.DataType]

_LETTERS: Letters = {
    "T": DATE,
    "ANY": DATE,
    "K": VARCHAR,
    "V": TIME,
    "S": TIMESTAMP,
    "R": decimal(3, 1),
}
_PLAIN: Letters = {**_LETTERS, "T": INT}
"""Sample types for functions that do not accept dates."""

_DECIMAL = decimal(10, 2)
_NUMBER = "INT|BIGINT|DECIMAL|DOUBLE"
_LITERALS: Mapping[str, Any] = {"INT": 3, "BOOLEAN": True}


def result_of(function: SqlFunction, overload: Overload | AggregateOverload) -> str:
    """The type of the result; several with `|` between them where it depends on those of the arguments.

    >>> from potok.sql.functions.registry import function_named
    >>> [result_of(f, f.overloads[0]) for f in map(function_named, ("LEN", "ARRAY_MAX", "SUM"))]
    ['INTEGER', 'T', 'INTEGER|BIGINT|DECIMAL|DOUBLE']
    """
    once = [argument for argument in arguments_of(overload.signature) if not argument.optional and argument.name != "*"]
    twice = [*once, *(argument for argument in once[-1:] if argument.variadic)]
    found = (_results(overload, taken, letters) for taken in (once, twice) for letters in (_LETTERS, _PLAIN))
    results = next(filter(None, found), [])
    of_rows = [(result.value_type if isinstance(function, TableFunction) else result) for result, _ in results]
    rendered = [_render(type_, letters) for type_, (_, letters) in zip(of_rows, results, strict=True)]
    return "|".join(dict.fromkeys(rendered))


def _results(
    overload: Overload | AggregateOverload, taken: list[Argument], known: Letters
) -> list[tuple[pa.DataType, Letters]]:
    """Return the result for each choice of types, with the type variables of the arguments."""
    text = " ".join(argument.type for argument in taken)
    letters = {name: type_ for name, type_ in known.items() if re.search(rf"\b{name}\b", text)}
    choices = [argument.type.replace("NUMBER", _NUMBER).split("|") for argument in taken]
    asked = (_asked(overload, [_type(one, letters) for one in chosen], taken) for chosen in itertools.product(*choices))
    return [(result, letters) for result in asked if result is not None]


def _asked(overload: Overload | AggregateOverload, types: list[Any], taken: list[Argument]) -> pa.DataType | None:
    if isinstance(overload, Overload):
        accepted = overload.accept(types)
        return None if accepted is None else accepted.result
    columns = overload.columns_among(len(types))
    call = overload.accept(types, [_LITERALS.get(argument.type) for argument in taken[columns:]])
    return None if call is None else call.result


def _type(text: str, letters: Letters) -> pa.DataType | LambdaShape:
    if text.startswith("LAMBDA "):
        parameters, _, body = text.removeprefix("LAMBDA ").partition(" => ")
        return LambdaShape(parameters.count(",") + 1, _type(body, letters))
    if not text or text == "DECIMAL":
        return _DECIMAL if text else VARCHAR
    (parsed,) = parse_script(f"CREATE TYPE t AS {text};")
    assert isinstance(parsed.statement, ast.CreateType)
    return resolve(parsed.statement.type, letters)


def _render(type_: pa.DataType, letters: Letters) -> str:
    def own(part: pa.DataType) -> str | None:
        letter = next((name for name, stands_for in letters.items() if part == stands_for), None)
        return letter or ("DECIMAL" if pa.types.is_decimal(part) else None)

    return type_name(type_, own)


_OPENING, _CLOSING = "(<[", ")>]"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument by name and type; one followed by `...` may be repeated. A lambda has no name."""

    name: str
    type: str
    optional: bool = False
    variadic: bool = False


def arguments_of(signature: str) -> tuple[Argument, ...]:
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    found: list[Argument] = []
    for text, optional in _parts(inside):
        if text == "...":
            last = found[-1]
            found[-1] = Argument(last.name, last.type, last.optional, variadic=True)
        elif "=>" in text:
            found.append(Argument("", f"LAMBDA {text}", optional))
        else:
            name, _, type_ = text.partition(" ")
            found.append(Argument(name, type_, optional))
    return tuple(found)


def _parts(text: str) -> list[tuple[str, bool]]:
    """Split at commas, with whether each part is in brackets. `=>` does not close a bracket."""
    parts: list[tuple[str, bool]] = []
    part, depth, optional, before = "", 0, False, ""
    for sign in text:
        if sign in "[]" and depth == 0:
            if part.strip():
                parts.append((part.strip(), optional))
            part, optional = "", sign == "["
        elif sign == "," and depth == 0:
            if part.strip():
                parts.append((part.strip(), optional))
            part = ""
        else:
            depth += (sign in _OPENING) - (sign in _CLOSING and before != "=")
            part += sign
        before = sign
    return [*parts, (part.strip(), optional)] if part.strip() else parts
