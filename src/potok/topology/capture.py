"""What to capture of a database: its tables, and how their changes are written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from urllib.parse import unquote

from potok.duration import Duration, to_seconds
from potok.errors import TopologyError
from potok.redact import split_url

SnapshotMode = Literal["initial", "never"]
Decimals = Literal["precise", "string", "double"]
Times = Literal["adaptive", "micros"]

_NAME = re.compile(r"[a-z0-9_]{1,50}")
_SCHEMES = {"postgresql": "postgres", "postgres": "postgres", "mysql": "mysql", "mariadb": "mysql"}


def _option(text: str, **arguments: Any) -> Any:
    return field(metadata={"doc": text}, **arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One database whose changes are written to topics. See docs/cdc.md."""

    url: str = _option("The database: `postgresql://user@host/database` or `mysql://user@host/database`.", repr=False)
    tables: tuple[str, ...] = _option(
        "The tables: `users`, or `sales.orders` if their schema is not `public` (PostgreSQL) or the database (MySQL)."
    )
    name: str = _option(
        "Names the capture. Topics are called `name.schema.table`, as with Debezium's `topic.prefix`. By default the "
        "name of the database.",
        default="",
    )
    snapshot: SnapshotMode = _option(
        "`initial` reads the rows that exist before the first change; `never` captures changes only.", default="initial"
    )
    chunk_rows: int = _option("How many rows a snapshot reads at a time.", default=50_000)
    partitions: int = _option("Number of partitions of a topic that is created.", default=1)
    with_schema: bool = _option(
        "Whether each record carries its schema, as with `schemas.enable` of Kafka Connect.", default=False
    )
    decimals: Decimals = _option(
        "How decimal numbers are written: `precise` (Connect's Decimal), `string` or `double`.", default="precise"
    )
    times: Times = _option(
        "The unit of times without a zone: `adaptive` takes milliseconds up to a precision of 3, as Debezium does by "
        "default, and `micros` always takes microseconds. Tables of `builder.cdc` and of SQL need `micros`, which is "
        "their default.",
        default="adaptive",
    )
    tombstones: bool = _option("Whether a delete is followed by a record without a value.", default=True)
    heartbeat: Duration = _option(
        "How often a message is written to the log of the database (PostgreSQL), so that the slot advances while the "
        "tables are quiet; 0 turns it off.",
        default="10 s",
    )
    slot: str = _option("The replication slot (PostgreSQL); by default `potok_` and the name.", default="")
    publication: str = _option("The publication (PostgreSQL); by default `potok_` and the name.", default="")
    server_id: int = _option(
        "The id of the capture as a replica (MySQL); by default it follows from the name.", default=0
    )

    def __post_init__(self) -> None:
        found = split_url(self.url)
        if found is None or found.scheme not in _SCHEMES:
            hint = "write postgresql://user@host:5432/database or mysql://user@host:3306/database"
            raise TopologyError("the URL does not name a database that can be captured", hint=hint)
        database = unquote(found.path.strip("/"))
        if not self.name:
            object.__setattr__(self, "name", re.sub(r"[^a-z0-9_]", "_", database.lower())[:50])
        if not database:
            raise TopologyError("the URL does not name a database", hint="append it: postgresql://user@host/shop")
        if not _NAME.fullmatch(self.name):
            raise TopologyError(
                f'"{self.name}" cannot be the name of a capture',
                hint="use up to 50 of the characters a-z, 0-9 and _: the replication slot has the same name",
            )
        for each in ("slot", "publication"):
            if not getattr(self, each):
                object.__setattr__(self, each, f"potok_{self.name}")
        default = "public" if self.kind == "postgres" else database
        tables = tuple(dict.fromkeys(table if "." in table else f"{default}.{table}" for table in self.tables))
        object.__setattr__(self, "tables", tables)
        self._check()

    def _check(self) -> None:
        if not self.tables:
            raise TopologyError(f'capture "{self.name}" has no tables', hint='write tables=["users"]')
        for each, kinds in (("snapshot", SnapshotMode), ("decimals", Decimals), ("times", Times)):
            if getattr(self, each) not in get_args(kinds):
                hint = f"use one of {', '.join(get_args(kinds))}"
                raise TopologyError(f"there is no {each} {getattr(self, each)!r}", hint=hint)
        for each in ("chunk_rows", "partitions"):
            if getattr(self, each) < 1:
                raise TopologyError(f"{each} = {getattr(self, each)} is too small", hint="write 1 or more")
        if self.heartbeat_s < 0:
            raise TopologyError("heartbeat is negative", hint='write heartbeat = "10 s", or 0')

    @property
    def kind(self) -> str:
        found = split_url(self.url)
        assert found is not None
        return _SCHEMES[found.scheme]

    @property
    def heartbeat_s(self) -> float:
        return to_seconds(self.heartbeat)

    def full_name(self, table: str) -> str:
        """Return a table with its schema; raise for one that is not captured."""
        for known in self.tables:
            if table in (known, known.split(".", 1)[1]):
                return known
        hint = f"the tables are {', '.join(self.tables)}"
        raise TopologyError(f'table "{table}" is not captured', hint=hint)

    def topic(self, table: str) -> str:
        """Return the topic of a table, as Debezium names it."""
        return f"{self.name}.{self.full_name(table)}"
