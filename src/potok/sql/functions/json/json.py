"""Functions of JSON strings."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from potok.sql.functions.function import (
    Accepted,
    Compute,
    LambdaShape,
    Overload,
    ScalarFunction,
    SqlFunction,
    Types,
    each_row,
    takes,
    takes_many,
)
from potok.sql.functions.json.documents import (
    MISSING,
    BadDocument,
    encodable,
    exact,
    has_fraction,
    looked_up,
    plain,
    quick,
    write,
)
from potok.sql.functions.json.writing import to_json
from potok.sql.functions.sizes import one_behind_the_other
from potok.sql.types import BOOLEAN, INT, VARCHAR, array, map_of


def _text(node: Any) -> str:
    """Format a value as function result: strings as they are, everything else as JSON."""
    return encodable(node if isinstance(node, str) else write(node))


def _extract(text: str, path: str) -> str | None:
    steps = steps_of(path)
    found = follow(quick(text), steps)
    if type(found) is str and found.isascii():
        return found
    if has_fraction(found):
        found = follow(exact(text), steps)
    return None if found is NOTHING else _text(found)


def _is_json(text: str | None) -> bool:
    if text is None:
        return False
    try:
        return quick(text) is not MISSING
    except BadDocument:
        return False


def _length(text: str) -> int | None:
    found = quick(text)
    return len(found) if isinstance(found, list) else None


def _concat(*texts: str) -> str | None:
    documents = [exact(text) for text in texts]
    if any(document is MISSING for document in documents):
        return None
    if len(documents) == 1:
        return encodable(write(documents[0], plain))
    if all(isinstance(document, dict) for document in documents):
        merged: dict[str, Any] = {}
        for document in documents:
            merged |= document
        return encodable(write(merged, plain))
    items = [item for document in documents for item in (document if isinstance(document, list) else [document])]
    return encodable(write(items, plain))


def _items(text: str) -> list[str]:
    found = looked_up(text, lambda document: document)
    if not isinstance(found, list):
        raise BadDocument(f"not a JSON array: {text}")
    return [encodable(write(item)) for item in found]


def _keys(text: str) -> list[str] | None:
    found = quick(text)
    return [encodable(key) for key in found] if isinstance(found, dict) else None


def _records(text: str) -> list[tuple[str, str]] | None:
    found = looked_up(text, lambda document: document)
    return [(encodable(key), _text(item)) for key, item in found.items()] if isinstance(found, dict) else None


def _contains(text: str | None, value: Any) -> bool | None:
    if text is None:
        return None
    try:
        items = exact(text) if isinstance(value, Decimal) else quick(text)
    except BadDocument:
        return False
    if not isinstance(items, list):
        return False
    if value is None:
        return any(item is None for item in items)
    if isinstance(value, Decimal):
        return any(isinstance(item, Decimal) and item == value for item in items)
    same = type(value)
    return same in (bool, int, float, str) and any(type(item) is same and item == value for item in items)


def _anything(types: Types) -> Accepted | None:
    """JSON_ARRAY_CONTAINS accepts a value of any type."""
    if len(types) != 2 or any(isinstance(type_, LambdaShape) for type_ in types):
        return None
    return Accepted((VARCHAR, types[1]), BOOLEAN) if types[0] in (VARCHAR, pa.null()) else None


def _any_value(types: Types) -> Accepted | None:
    if len(types) != 1 or isinstance(types[0], LambdaShape):
        return None
    return Accepted(types, VARCHAR)


def _function(
    name: str,
    summary: str,
    signature: str,
    accept: Callable[[Types], Accepted | None],
    compute: Compute,
    example: str,
    size: Any = None,
) -> ScalarFunction:
    return ScalarFunction(name, "json", summary, (Overload(signature, accept, compute, size=size),), example=example)


FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    _function(
        "EXTRACTJSONFIELD",
        "The value at a path in a JSON document, as text; NULL if there is nothing.",
        "EXTRACTJSONFIELD(json VARCHAR, path VARCHAR)",
        takes(VARCHAR, VARCHAR, result=VARCHAR),
        each_row(_extract),
        """EXTRACTJSONFIELD('{"log": {"cloud": "gcp"}}', '$.log.cloud') -> 'gcp'""",
    ),
    _function(
        "IS_JSON_STRING",
        "Whether a text is a JSON document; false for NULL.",
        "IS_JSON_STRING(text VARCHAR)",
        takes(VARCHAR, result=BOOLEAN),
        each_row(_is_json, nulls=True),
        "IS_JSON_STRING('[1, 2]') -> true",
    ),
    _function(
        "JSON_ARRAY_CONTAINS",
        "Whether a value is one of the items of a JSON array.",
        "JSON_ARRAY_CONTAINS(json VARCHAR, value ANY)",
        _anything,
        each_row(_contains, nulls=True),
        "JSON_ARRAY_CONTAINS('[1, 2]', 2) -> true",
    ),
    _function(
        "JSON_ARRAY_LENGTH",
        "How many items a JSON array has; NULL if the text is something else.",
        "JSON_ARRAY_LENGTH(json VARCHAR)",
        takes(VARCHAR, result=INT),
        each_row(_length),
        "JSON_ARRAY_LENGTH('[1, [2, 3]]') -> 2",
    ),
    _function(
        "JSON_CONCAT",
        "JSON documents in one: objects are merged, the last one wins; everything else becomes one array.",
        "JSON_CONCAT(json VARCHAR, ...)",
        takes_many(VARCHAR, result=VARCHAR),
        each_row(_concat),
        """JSON_CONCAT('{"a": 1}', '{"b": 2}') -> '{"a":1,"b":2}'""",
        one_behind_the_other,
    ),
    _function(
        "JSON_ITEMS",
        "The items of a JSON array, each as JSON.",
        "JSON_ITEMS(json VARCHAR)",
        takes(VARCHAR, result=array(VARCHAR)),
        each_row(_items),
        """JSON_ITEMS('[{"a": 1}, 2]') -> ['{"a":1}', '2']""",
    ),
    _function(
        "JSON_KEYS",
        "The keys of a JSON object; NULL if the text is something else.",
        "JSON_KEYS(json VARCHAR)",
        takes(VARCHAR, result=array(VARCHAR)),
        each_row(_keys),
        """JSON_KEYS('{"a": 1, "b": 2}') -> ['a', 'b']""",
    ),
    _function(
        "JSON_RECORDS",
        "The keys of a JSON object with their values as text; NULL if the text is something else.",
        "JSON_RECORDS(json VARCHAR)",
        takes(VARCHAR, result=map_of(VARCHAR, VARCHAR)),
        each_row(_records),
        """JSON_RECORDS('{"a": "x", "b": [1]}') -> {a='x', b='[1]'}""",
    ),
    _function(
        "TO_JSON_STRING",
        "Any value as JSON, with the fields of structs and the keys of maps in order; NULL is 'null'.",
        "TO_JSON_STRING(value ANY)",
        _any_value,
        to_json,
        "TO_JSON_STRING(ARRAY[1, 2]) -> '[1,2]'",
    ),
)


NOTHING: Any = object()
"""The result of a path that does not exist. A JSON null exists."""


LONGEST_PATH = 1_000


@lru_cache(maxsize=1000)
def steps_of(path: str) -> tuple[str, ...]:
    """The steps of a path; raises ValueError.

    >>> steps_of("$.log['cloud'][0]")
    ('log', 'cloud', '0')
    """
    if not path.startswith("$") or len(path) > LONGEST_PATH:
        raise _invalid(path[:LONGEST_PATH])
    steps, at = [], 1
    while at < len(path):
        if path[at] == ".":
            step, at = _plain(path, at + 1, ":@_")
        elif path[at] == "[":
            step, at = _quoted(path, at + 1) if path[at + 1 : at + 2] in ("'", '"') else _plain(path, at + 1, "_")
            if path[at : at + 1] != "]":
                raise _invalid(path)
            at += 1
        else:
            raise _invalid(path)
        steps.append(step)
    return tuple(steps)


def _plain(path: str, at: int, allowed: str) -> tuple[str, int]:
    end = at
    while end < len(path) and (path[end].isalpha() or path[end].isdigit() or path[end] in allowed):
        end += 1
    if end == at:
        raise _invalid(path)
    return path[at:end], end


def _quoted(path: str, at: int) -> tuple[str, int]:
    quote, at = path[at : at + 1], at + 1
    step = ""
    while at < len(path) and path[at] != quote:
        if path[at] == "\\":
            at += 1
            if not quote or path[at : at + 1] not in (quote, "\\"):
                raise _invalid(path)
        step += path[at]
        at += 1
    if at >= len(path) or not quote:
        raise _invalid(path)
    return step, at + 1


def _invalid(path: str) -> ValueError:
    return ValueError(f"invalid JSON path: '{path}'")


def follow(node: Any, steps: tuple[str, ...]) -> Any:
    """Return the value at a path, or `NOTHING`."""
    for step in steps:
        if isinstance(node, dict):
            node = node.get(step, NOTHING)
        elif isinstance(node, list):
            digits = step.removeprefix("+")
            index = int(digits) if digits.isascii() and digits.isdigit() else len(node)
            node = node[index] if index < len(node) else NOTHING
        else:
            return NOTHING
        if node is NOTHING:
            return NOTHING
    return "" if node is MISSING else node
