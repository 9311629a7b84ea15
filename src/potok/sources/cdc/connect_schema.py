"""The schemas that Kafka Connect's JSON converter writes next to each payload."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import orjson

from potok.sources.cdc.shape import Column, Shape

if TYPE_CHECKING:
    from potok.sources.cdc.envelope import Source

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
def _envelope(name: str, connector: str, columns: tuple[Column, ...]) -> str:
    # A row before a change may have its key alone, so no other field can be required.
    row = {"type": "struct", "fields": _fields(columns), "optional": True, "name": f"{name}.Value"}
    return orjson.dumps(
        {
            "type": "struct",
            "fields": [
                {**row, "field": "before"},
                {**row, "field": "after"},
                _source(connector),
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
    return _envelope(f"{source.name}.{shape.name}", source.connector, shape.columns)


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


def _source(connector: str) -> dict[str, Any]:
    def field(name: str, type_: str = "string", *, optional: bool = False) -> dict[str, Any]:
        return {"type": type_, "optional": optional, "field": name}

    snapshot = {
        "type": "string",
        "optional": True,
        "name": "io.debezium.data.Enum",
        "version": 1,
        "parameters": {"allowed": "true,last,false,incremental"},
        "default": "false",
        "field": "snapshot",
    }
    fields = [
        field("version"),
        field("connector"),
        field("name"),
        field("ts_ms", "int64"),
        snapshot,
        field("db"),
        field("sequence", optional=True),
        field("schema"),
        field("table"),
        field("txId", "int64", optional=True),
        field("lsn", "int64", optional=True),
        field("xmin", "int64", optional=True),
    ]
    name = f"io.debezium.connector.{connector}.Source"
    return {"type": "struct", "fields": fields, "optional": False, "name": name, "field": "source"}
