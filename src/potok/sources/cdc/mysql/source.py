"""The field `source` of changes in MariaDB and MySQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from potok.sources.cdc.envelopes.json_columns import NULL, quoted
from potok.sources.cdc.envelopes.shape import Shape, json_text
from potok.sources.cdc.envelopes.source import field, first_fields, numbers
from potok.version import __version__


class Origin(NamedTuple):
    server_id: int
    gtid: str | None
    file: str
    pos: int
    """Where the event of the change begins."""
    row: int
    """Which row of the event it is."""


@dataclass(frozen=True, slots=True)
class MysqlSource:
    name: str
    connector: str
    """`mariadb` or `mysql`."""

    def parts(self, shape: Shape, times: pa.Array, origins: Sequence[tuple[Any, ...]]) -> list[pa.Array | str]:
        servers, gtids, files, positions, rows = zip(*origins, strict=True)
        begin = f'{{"version":{json_text(__version__)},"connector":"{self.connector}","name":{json_text(self.name)}'
        where = f'"db":{json_text(shape.schema)},"sequence":null,"table":{json_text(shape.table)}'
        return [
            f'{begin},"ts_ms":',
            times,
            f',"snapshot":"false",{where},"server_id":',
            numbers(servers),
            ',"gtid":',
            pc.fill_null(quoted(pa.array(gtids, pa.string())), NULL),
            ',"file":',
            quoted(pa.array(files, pa.string())),
            ',"pos":',
            numbers(positions),
            ',"row":',
            numbers(rows),
            ',"thread":null,"query":null}',
        ]

    def of_snapshot(self, shape: Shape, stream: Mapping[str, Any], read_ms: int) -> dict[str, Any]:
        return {
            "version": __version__,
            "connector": self.connector,
            "name": self.name,
            "ts_ms": read_ms,
            "snapshot": "incremental",
            "db": shape.schema,
            "sequence": None,
            "table": shape.table,
            "server_id": 0,
            "gtid": None,
            "file": stream["file"],
            "pos": stream["pos"],
            "row": 0,
            "thread": None,
            "query": None,
        }

    def fields(self) -> list[dict[str, Any]]:
        return [
            *first_fields(),
            field("sequence", optional=True),
            field("table", optional=True),
            field("server_id", "int64"),
            field("gtid", optional=True),
            field("file"),
            field("pos", "int64"),
            field("row", "int32"),
            field("thread", "int64", optional=True),
            field("query", optional=True),
        ]
