"""Parameter types of functions over arrays and maps of any type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from potok.sql.expressions.unify import common
from potok.sql.functions.function import Accepted, LambdaShape, Types
from potok.sql.types import NULL

Accept = Callable[[Types], Accepted | None]
ItemType = Callable[[pa.DataType], "pa.DataType | None"]


def plain_types(types: Types) -> list[pa.DataType] | None:
    """Return the types, unless one is a lambda."""
    found = [type_ for type_ in types if not isinstance(type_, LambdaShape)]
    return found if len(found) == len(types) else None


def array_item(types: Sequence[pa.DataType], single: Sequence[pa.DataType] = ()) -> pa.DataType | None:
    """Return the common element type of these arrays and `single` values; None if there is none or all are NULL."""
    if any(type_ != NULL and not pa.types.is_list(type_) for type_ in types) or all(type_ == NULL for type_ in types):
        return None
    return _known([*[type_.value_type for type_ in types if type_ != NULL], *single])


def map_type(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return the common type of these maps."""
    if any(type_ != NULL and not pa.types.is_map(type_) for type_ in types):
        return None
    return _known(types)


def _known(types: Sequence[pa.DataType]) -> pa.DataType | None:
    found = common(types)
    return None if found == NULL else found


def arrays(count: int, result: ItemType) -> Accept:
    """Accept a number of arrays with one element type, which determines the result type; None rejects."""

    def accept(types: Types) -> Accepted | None:
        given = plain_types(types)
        item = array_item(given) if given is not None and len(given) == count else None
        gives = None if item is None else result(item)
        return None if gives is None else Accepted([pa.list_(item)] * count, gives)

    return accept


def array_and_item(result: ItemType) -> Accept:
    """Accept an array and a value of its element type."""

    def accept(types: Types) -> Accepted | None:
        given = plain_types(types)
        item = array_item(given[:1], given[1:]) if given is not None and len(given) == 2 else None
        gives = None if item is None else result(item)
        return None if gives is None else Accepted([pa.list_(item), item], gives)

    return accept
