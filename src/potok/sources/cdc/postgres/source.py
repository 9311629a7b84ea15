"""The field `source` of changes in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from potok.sources.cdc.envelopes.json_columns import joined
from potok.sources.cdc.envelopes.shape import Shape, json_text
from potok.sources.cdc.envelopes.source import field, first_fields, numbers
from potok.version import __version__

CONNECTOR = "postgresql"


class Origin(NamedTuple):
    lsn: int
    xid: int
    last_commit: int
    """Where the transaction before this one was committed."""


@dataclass(frozen=True, slots=True)
class PostgresSource:
    name: str
    database: str

    @property
    def connector(self) -> str:
        return CONNECTOR

    def parts(self, shape: Shape, times: pa.Array, origins: Sequence[tuple[Any, ...]]) -> list[pa.Array | str]:
        lsns, xids, commits = zip(*origins, strict=True)
        lsn = numbers(lsns)
        # Where the last transaction was committed and where the change is, as JSON in a JSON string.
        last = [f'\\"{each}\\"' if each else "null" for each in commits]
        return [
            f'{{"version":{json_text(__version__)},"connector":"{CONNECTOR}","name":{json_text(self.name)},"ts_ms":',
            times,
            f',"snapshot":"false","db":{json_text(self.database)},"sequence":',
            joined('"[', pa.array(last, pa.string()), ',\\"', lsn, '\\"]"'),
            f',"schema":{json_text(shape.schema)},"table":{json_text(shape.table)},"txId":',
            numbers([each or None for each in xids]),
            ',"lsn":',
            lsn,
            ',"xmin":null}',
        ]

    def of_snapshot(self, shape: Shape, stream: Mapping[str, Any], read_ms: int) -> dict[str, Any]:
        lsn = stream["lsn"]
        return {
            "version": __version__,
            "connector": CONNECTOR,
            "name": self.name,
            "ts_ms": read_ms,
            "snapshot": "incremental",
            "db": self.database,
            "sequence": orjson.dumps([None, str(lsn)]).decode(),
            "schema": shape.schema,
            "table": shape.table,
            "txId": None,
            "lsn": lsn,
            "xmin": None,
        }

    def fields(self) -> list[dict[str, Any]]:
        return [
            *first_fields(),
            field("sequence", optional=True),
            field("schema"),
            field("table"),
            field("txId", "int64", optional=True),
            field("lsn", "int64", optional=True),
            field("xmin", "int64", optional=True),
        ]
