"""Reject joins that a continuous query cannot compute."""

from __future__ import annotations

import pyarrow as pa

from potok.sql.analysis.join_side import Side
from potok.sql.catalog import WindowShape
from potok.sql.errors import Refused, TypeMistake
from potok.sql.syntax import ast
from potok.sql.syntax.text import show
from potok.sql.types import quoted, type_name


def check_key_type(one: Side, other: Side, condition: ast.Binary) -> None:
    """Check that both sides have the same type, which a key can have."""
    if one.key.type != other.key.type:
        raise TypeMistake(
            f"cannot join {type_name(one.key.type)} with {type_name(other.key.type)}",
            hint=f"write CAST({show(one.condition)} AS {type_name(other.key.type)}) on the side that is no key",
            location=condition.at,
        )
    if _holds_map(one.key.type):
        hint = "join by an entry: ON a.column['name'] = b.column['name']"
        raise Refused(
            f"cannot join by {type_name(one.key.type)}: a key cannot hold a map", hint=hint, location=condition.at
        )


def _holds_map(type_: pa.DataType) -> bool:
    inner = [type_.field(index).type for index in range(type_.num_fields)]
    return pa.types.is_map(type_) or any(map(_holds_map, inner))


def check_windows(one: Side, other: Side, clause: ast.Join) -> None:
    """Check that both sides have the same windows: windowed keys are compared as a whole."""
    windows = one.rows.window, other.rows.window
    if windows == (None, None):
        return
    shown = " and ".join(_windowed(side) for side in (one, other))
    if None in windows:
        hint = f"join sources that both have windows, or none: {shown}"
        raise Refused("a windowed source cannot be joined with one without windows", hint=hint, location=clause.at)
    if windows[0] != windows[1]:
        hint = f"the windows must be of the same kind and size: {shown}"
        raise Refused("sources with different windows cannot be joined", hint=hint, location=clause.at)
    for side in (one, other):
        if not side.is_own_key:
            keys = ", ".join(quoted(field.name) for field in side.rows.keys)
            hint = f"join a windowed source by its key: {keys}"
            raise Refused("a windowed source cannot get another key", hint=hint, location=side.condition.at)


def _windowed(side: Side) -> str:
    names, window = " and ".join(side.rows.sources), side.rows.window
    return f"{names} has {_kind(window)}" if window is not None else f"{names} has none"


def _kind(window: WindowShape) -> str:
    size = "" if window.size_ms is None else f" of {window.size_ms} ms"
    return f"{window.kind} windows{size}"


def check_primary_key(side: Side) -> None:
    if not side.is_own_key:
        keys = ", ".join(quoted(field.name) for field in side.rows.keys)
        raise Refused(
            f"{show(side.condition)} is not the primary key of its table",
            hint=f"a table is joined by its primary key: {keys}",
            location=side.condition.at,
        )
