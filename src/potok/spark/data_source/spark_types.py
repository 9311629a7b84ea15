"""Convert Arrow columns to those that Spark expects of a data source."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the schema of a DataFrame with these columns."""
    return from_arrow_schema(pa.schema([pa.field(field.name, _known(field.type)) for field in schema]))


def fitted(batches: Iterator[pa.RecordBatch], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield record batches with exactly the types that Spark derives from its schema."""
    wanted = to_arrow_schema(schema, timezone="UTC")
    for batch in batches:
        columns = [column.cast(field.type) for column, field in zip(batch.columns, wanted, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=wanted)


def _known(type_: pa.DataType) -> pa.DataType:
    """Return a type, with text for a time of day, which Spark does not read from Arrow."""
    if pa.types.is_time(type_):
        return pa.string()
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _known(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_known(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(_known(type_.key_type), _known(type_.item_type))
    return type_
