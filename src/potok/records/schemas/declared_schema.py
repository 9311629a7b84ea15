"""Schemas from declarations: text, Arrow types, classes and annotations."""

from __future__ import annotations

import pyarrow as pa

from potok.records.schemas.annotations import schema_of_annotation
from potok.records.schemas.arrow_types import schema_of_arrow
from potok.records.schemas.ddl import parse_ddl
from potok.records.schemas.schema import Schema


def declared_schema(declared: object) -> Schema | None:
    """Return the schema of a declared type; None, which means dynamic values, for None.

    >>> declared_schema("order_id string not null, amount double").names
    ('order_id', 'amount')

    Args:
        declared: A dataclass, a `Record`, a TypedDict, a DDL string (columns or one type), a Python type such
            as `int` or `list[str]`, an Arrow type or schema, or a `Schema`.
    """
    if declared is None or isinstance(declared, Schema):
        return declared
    if isinstance(declared, str):
        return parse_ddl(declared)
    if isinstance(declared, pa.DataType | pa.Schema | pa.Field):
        return schema_of_arrow(declared)
    return schema_of_annotation(declared)
