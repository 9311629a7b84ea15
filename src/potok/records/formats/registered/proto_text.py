"""The Protobuf schema of declared columns, as text: what `protobuf_schema` makes of them, with names."""

from __future__ import annotations

import re
from collections.abc import Container

import pyarrow as pa

from potok.records.formats.protobuf_schema import known_message
from potok.records.schemas.schema import Schema

_ILLEGAL = re.compile(r"[^A-Za-z0-9_]", re.ASCII)
_SCALARS = (
    (pa.types.is_boolean, "bool", "Bool"),
    (pa.types.is_int64, "int64", "Int64"),
    (pa.types.is_integer, "int32", "Int32"),
    (pa.types.is_float32, "float", "Float"),
    (pa.types.is_float64, "double", "Double"),
    (pa.types.is_string, "string", "String"),
    (pa.types.is_binary, "bytes", "Bytes"),
)
_KNOWN = {
    "Timestamp": ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
    "Date": ("google.type.Date", "google/type/date.proto"),
    "TimeOfDay": ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    "Decimal": ("confluent.type.Decimal", "confluent/type/decimal.proto"),
}
_META, _WRAPPERS = "confluent/meta.proto", "google/protobuf/wrappers.proto"


def proto_text(schema: Schema, full_name: str, nulls: str) -> str:
    """Return the schema of a struct, whose message has this name with its package."""
    package, _, name = full_name.rpartition(".")
    written = _Writing(nulls)
    body = written.message(name, schema, "")
    lines = ['syntax = "proto3";']
    lines += [f"package {package};"] if package else []
    lines += [f'import "{one}";' for one in sorted(written.imports)]
    return "\n".join([*lines, "", *body, ""])


class _Writing:
    def __init__(self, nulls: str) -> None:
        self._nulls = nulls
        self.imports: set[str] = set()

    def message(self, name: str, schema: Schema, indent: str) -> list[str]:
        inner = f"{indent}  "
        lines, nested, taken = [f"{indent}message {name} {{"], list[str](), set[str]()
        for number, field in enumerate(schema.fields, 1):
            legal = _legal(field.name, taken, number)
            taken.add(legal)
            type_, label, options = self._type(field.schema, f"{legal}_Message", nested, inner)
            lines.append(f"{inner}{label}{type_} {legal} = {number}{options};")
        return [*lines, *nested, f"{indent}}}"]

    def _type(self, schema: Schema, name: str, nested: list[str], indent: str) -> tuple[str, str, str]:
        """Return the type of a field, its label, and its options."""
        if schema.kind == "list" and schema.item is not None:
            type_, _, options = self._single(schema.item, name, nested, indent)
            return type_, "repeated ", options
        if schema.kind == "map" and schema.item is not None and schema.key is not None:
            key, _, _ = self._single(schema.key, name, nested, indent)
            value, _, _ = self._single(schema.item, name, nested, indent)
            return f"map<{key}, {value}>", "", ""
        type_, scalar, options = self._single(schema, name, nested, indent)
        if scalar and self._nulls == "wrapper":
            self.imports.add(_WRAPPERS)
            return f"google.protobuf.{scalar}Value", "", options
        return type_, "optional " if scalar and self._nulls == "optional" else "", options

    def _single(self, schema: Schema, name: str, nested: list[str], indent: str) -> tuple[str, str, str]:
        """Return a type, the name of its wrapper if it is a scalar of Protobuf, and the options of its field."""
        if schema.kind == "struct":
            nested += self.message(name, schema, indent)
            return name, "", ""
        known = known_message(schema.arrow)
        if known is not None:
            type_, path = _KNOWN[known]
            self.imports.add(path)
            return type_, "", self._digits(schema) if known == "Decimal" else ""
        return next((type_, wrapper, "") for matches, type_, wrapper in _SCALARS if matches(schema.arrow))

    def _digits(self, schema: Schema) -> str:
        self.imports.add(_META)
        pairs = {"precision": schema.arrow.precision, "scale": schema.arrow.scale}
        params = ", ".join(f'{{ key: "{key}", value: "{value}" }}' for key, value in pairs.items())
        return f" [(confluent.field_meta) = {{ params: [{params}] }}]"


def _legal(name: str, taken: Container[str], number: int) -> str:
    legal = _ILLEGAL.sub("_", name)
    legal = f"_{legal}" if not legal or legal[0].isdigit() else legal
    return f"{legal}_{number}" if legal in taken else legal
