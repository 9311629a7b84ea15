"""The schemas that Kafka Connect's JSON converter writes next to each payload."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import orjson

from potok.sources.cdc.envelopes.shape import Column, Shape

if TYPE_CHECKING:
    from potok.sources.cdc.envelopes.source import Source

_BLOCK = {
    "type": "struct",
    "fields": [
        {"type": "string", "optional": False, "field": "id"},
        {"type": "int64", "optional": False, "field": "total_order"},
        {"type": "int64", "optional": False, "field": "data_collection_order"},
    ],
    "optional": True,
    "name": "event.block",
    "version": 1,
    "field": "transaction",
}


@functools.lru_cache(maxsize=256)
def _envelope(source: Source, name: str, columns: tuple[Column, ...]) -> str:
    # A row before a change may have its key alone, so no other field can be required.
    row = {"type": "struct", "fields": _fields(columns), "optional": True, "name": f"{name}.Value"}
    return orjson.dumps(
        {
            "type": "struct",
            "fields": [
                {**row, "field": "before"},
                {**row, "field": "after"},
                _source(source),
                {"type": "string", "optional": False, "field": "op"},
                {"type": "int64", "optional": True, "field": "ts_ms"},
                _BLOCK,
            ],
            "optional": False,
            "name": f"{name}.Envelope",
            "version": 1,
        }
    ).decode()


def envelope_schema(source: Source, shape: Shape) -> str:
    """Return the schema of the envelopes of a table, as JSON."""
    return _envelope(source, f"{source.name}.{shape.name}", shape.columns)


def key_schema(source: Source, shape: Shape) -> str:
    """Return the schema of the keys of a table, as JSON."""
    return orjson.dumps(
        {
            "type": "struct",
            "fields": _fields(shape.key_columns),
            "optional": False,
            "name": f"{source.name}.{shape.name}.Key",
        }
    ).decode()


def _fields(columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    return [{**column.kind.schema(optional=not column.key), "field": column.name} for column in columns]


def _source(source: Source) -> dict[str, Any]:
    name = f"io.debezium.connector.{source.connector}.Source"
    return {"type": "struct", "fields": source.fields(), "optional": False, "name": name, "field": "source"}
