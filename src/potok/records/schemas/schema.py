"""The declared type of a value or a key."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa

from potok.errors import SchemaError
from potok.records.declared_class import instance_class, register_type, struct_type
from potok.records.schemas.ddl_text import print_ddl
from potok.records.value import Value


class _NoDefault:
    """The sentinel of a field without a default, because `None` is a possible default."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"

    def __reduce__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT = _NoDefault()


@dataclass(frozen=True)
class Field:
    """A field of a struct.

    `default` replaces a missing field, and a null one if the field is not nullable. It is one constant: a dataclass's
    `default_factory` is called once, when the schema is created, because a record must always decode to the
    same value.
    """

    name: str
    schema: Schema
    nullable: bool = True
    default: Any = dataclasses.field(default=NO_DEFAULT, hash=False)
    subject: str = ""
    """The field that names the person whose data this is; empty for what is not personal."""

    @property
    def type(self) -> pa.DataType:
        return self.schema.arrow

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT

    @property
    def required(self) -> bool:
        """Whether a record in which this field is missing or null is a bad record."""
        return not self.nullable and not self.has_default


@dataclass(frozen=True)
class Schema:
    """The structure of a value. Schemas are equal when they accept the same values and produce the same columns.

    `arrow` is the type of the column. Its fields are all nullable, so that columns of equal shape are of equal type;
    `fields` and `item_nullable` say what is required. `declared` is the dataclass that a struct was declared with;
    lambdas see its values as instances of that class.
    """

    kind: Literal["scalar", "struct", "list", "map"]
    arrow: pa.DataType
    fields: tuple[Field, ...] = ()
    key: Schema | None = None
    item: Schema | None = None
    item_nullable: bool = True
    declared: type | None = dataclasses.field(default=None, compare=False, repr=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.declared is not None:
            register_type(self.arrow, self.declared)

    @staticmethod
    def scalar(arrow: pa.DataType) -> Schema:
        return Schema("scalar", arrow)

    @staticmethod
    def struct(fields: Iterable[Field], declared: type | None = None) -> Schema:
        given = tuple(fields)
        names = [field.name for field in given]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise SchemaError(f'field "{min(twice)}" is declared twice', hint="give each field a different name")
        arrow = struct_type([pa.field(field.name, field.type) for field in given], declared)
        return Schema("struct", arrow, given, declared=declared)

    @staticmethod
    def list_of(item: Schema, *, nullable: bool = True) -> Schema:
        return Schema("list", pa.list_(item.arrow), item=item, item_nullable=nullable)

    @staticmethod
    def map_of(key: Schema, item: Schema, *, nullable: bool = True) -> Schema:
        if not (pa.types.is_string(key.arrow) or pa.types.is_integer(key.arrow)):
            raise SchemaError(f"a map cannot have keys of type {key.arrow}", hint="use string or integer keys")
        return Schema("map", pa.map_(key.arrow, item.arrow), key=key, item=item, item_nullable=nullable)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def field(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        raise SchemaError(f'there is no field "{name}"', hint=f"the fields are {', '.join(self.names)}")

    def select(self, columns: Iterable[str] | None) -> Schema:
        """Return only these fields, in the order of the schema; all of them for None, or if this is not a
        struct.
        """
        if columns is None or self.kind != "struct":
            return self
        wanted = {self.field(name).name for name in columns}
        return self if len(wanted) == len(self.fields) else Schema.struct(f for f in self.fields if f.name in wanted)

    def ddl(self) -> str:
        """Return the schema as DDL. `declared_schema` reads an equal one from it, if its defaults are plain values."""
        return print_ddl(self)

    def python_type(self) -> Any:
        """Return the type of the objects that lambdas see."""
        if self.kind == "struct":
            return Value if self.declared is None else instance_class(self.declared)
        if self.kind == "list":
            return list[_item(self).python_type()]  # type: ignore[misc]
        if self.kind == "map":
            assert self.key is not None
            return dict[self.key.python_type(), _item(self).python_type()]  # type: ignore[misc]
        for matches, kind in _PYTHON_TYPES:
            if matches(self.arrow):
                return kind
        raise SchemaError(f"no Python type represents {self.arrow}")

    def __str__(self) -> str:
        return self.ddl()


def holds_decimal(schema: Schema) -> bool:
    """Whether a value in it needs all digits of a number."""
    nested = [field.schema for field in schema.fields]
    nested += [inner for inner in (schema.key, schema.item) if inner is not None]
    return pa.types.is_decimal(schema.arrow) or any(holds_decimal(inner) for inner in nested)


def _item(schema: Schema) -> Schema:
    assert schema.item is not None
    return schema.item


_PYTHON_TYPES = (
    (pa.types.is_string, str),
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_binary, bytes),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_date, dt.date),
    (pa.types.is_time, dt.time),
    (pa.types.is_timestamp, dt.datetime),
)
