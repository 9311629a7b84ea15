from __future__ import annotations

import pyarrow as pa
import pytest

from potok.errors import SchemaError
from potok.records.schemas.declared_schema import declared_schema


def ddl(declared: object) -> str:
    schema = declared_schema(declared)
    assert schema is not None
    return schema.ddl()


@pytest.mark.parametrize(
    ("arrow", "text"),
    [
        *((pa.large_string(), "string"), (pa.uint8(), "smallint"), (pa.uint32(), "bigint"), (pa.float16(), "float")),
        *(
            (pa.timestamp("ms"), "timestamp_ntz"),
            (pa.timestamp("ns", "Europe/Riga"), "timestamp"),
            (pa.date64(), "date"),
            (pa.time32("s"), "time"),
        ),
        *((pa.large_list(pa.string()), "array<string>"), (pa.dictionary(pa.int8(), pa.string()), "string")),
        (pa.list_(pa.field("item", pa.int32(), nullable=False)), "array<int not null>"),
        (pa.map_(pa.string(), pa.float64()), "map<string, double>"),
        (pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.binary(4))]), "a bigint not null, b binary"),
    ],
)
def test_an_arrow_type_becomes_the_nearest_one_that_potok_computes_with(arrow: object, text: str) -> None:
    assert ddl(arrow) == text


def test_the_arrow_type_of_a_schema_is_its_own_schema() -> None:
    for text in ("a string, b array<struct<c: decimal(10,2)>>, m map<string, timestamp>", "bigint"):
        schema = declared_schema(text)
        assert schema is not None
        assert declared_schema(schema.arrow) == schema


def test_a_type_without_values_is_refused() -> None:
    for arrow in (pa.uint64(), pa.duration("s"), pa.time64("us"), pa.decimal256(50, 2)):
        with pytest.raises(SchemaError, match="cannot be of type"):
            declared_schema(arrow)
