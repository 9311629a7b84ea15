"""Schemas as text: types by their SQL names, fields as columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from potok.records.formats.json.objects import dumps
from potok.records.schemas.column_types import TYPES

if TYPE_CHECKING:
    from potok.records.schemas.schema import Field, Schema

_NAMES = {arrow: name for name, arrow in TYPES.items()}


def print_ddl(schema: Schema) -> str:
    """Return the text of a schema: columns for a struct that has some, else one type."""
    if schema.kind == "struct" and schema.fields:
        return ", ".join(_print_field(field, " ") for field in schema.fields)
    return print_type(schema)


def print_type(schema: Schema) -> str:
    """Return the name of a type, as in error messages and DDL."""
    if schema.kind == "struct":
        return f"struct<{', '.join(_print_field(field, ': ') for field in schema.fields)}>"
    suffix = "" if schema.item_nullable else " not null"
    if schema.kind == "list":
        assert schema.item is not None
        return f"array<{print_type(schema.item)}{suffix}>"
    if schema.kind == "map":
        assert schema.key is not None
        assert schema.item is not None
        return f"map<{print_type(schema.key)}, {print_type(schema.item)}{suffix}>"
    if pa.types.is_decimal(schema.arrow):
        return f"decimal({schema.arrow.precision},{schema.arrow.scale})"
    return _NAMES.get(schema.arrow, str(schema.arrow))


def _print_field(field: Field, separator: str) -> str:
    name = field.name
    # A quoted name cannot be mistaken for the start of a type.
    plain = re.fullmatch(r"[^\W\d]\w*", name) is not None
    quoted = name if plain else "`" + name.replace("`", "``") + "`"
    parts = [f"{quoted}{separator}{print_type(field.schema)}"]
    if not field.nullable:
        parts.append("not null")
    if field.has_default:
        parts.append(f"default {_print_literal(field.default)}")
    return " ".join(parts)


def _print_literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "json '" + dumps(value).decode().replace("'", "''") + "'"
