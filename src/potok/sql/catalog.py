"""The names that statements can use: streams, tables, types. A catalog is immutable; a statement creates a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.sql.errors import Refused, SourceLocation, UnknownName, closest
from potok.sql.types import quoted


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a stream or table. `header` is None, or the name of the header it holds, or "" for all of them."""

    name: str
    type: pa.DataType
    is_key: bool = False
    header: str | None = None


@dataclass(frozen=True, slots=True)
class WindowShape:
    """The windows in the keys of a windowed source: `kind` is TUMBLING, HOPPING or SESSION."""

    kind: str
    size_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StoredTable:
    """How the rows of a table of a program are stored, as Python data. `table` is its name in the query. `value`
    returns the columns of a stored value, `key` the column of a stored key, and `keys` the stored keys that a value of
    that column may represent.
    """

    table: str
    value: Callable[[Any], Mapping[str, Any]]
    key: Callable[[Any], Any]
    keys: Callable[[Any], Iterable[Any]]
    is_json: bool = False
    """Whether the only column of the value holds JSON, because no type was declared."""


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """A table of a database whose changes are written to the topic of a source."""

    variable: str
    """The environment variable with the URL of the database."""
    name: str
    """The capture: tables of one database share it."""
    table: str
    topic: str


@dataclass(frozen=True, slots=True)
class Source:
    """A stream or table over a topic, with its formats."""

    name: str
    is_table: bool
    columns: tuple[SourceColumn, ...]
    topic: str
    key_format: str
    value_format: str
    timestamp: str = ""
    timestamp_format: str = ""
    window: WindowShape | None = None
    read_only: bool = False
    partitions: int | None = None
    retention_ms: int | None = None
    cleanup_policy: str = ""
    history_ms: int | None = None
    """How long the versions of its rows are kept, for AS OF."""
    statement: str = ""
    query: str = ""
    """The query that writes it, if one does."""
    table_of: str = ""
    """The query that stores its rows, if pull queries can read it."""
    captured: CapturedTable | None = None
    stored_table: StoredTable | None = None
    """How that query stores them, if it is not the query of a statement."""

    @property
    def kind(self) -> str:
        return "TABLE" if self.is_table else "STREAM"

    @property
    def keys(self) -> tuple[SourceColumn, ...]:
        return tuple(column for column in self.columns if column.is_key)

    @property
    def values(self) -> tuple[SourceColumn, ...]:
        return tuple(column for column in self.columns if not column.is_key and column.header is None)

    @property
    def headers(self) -> tuple[SourceColumn, ...]:
        return tuple(column for column in self.columns if column.header is not None)

    @property
    def key_type(self) -> pa.DataType | None:
        """The type of a record's key without its window: one column bare, several as a struct."""
        keys = self.keys
        if not keys:
            return None
        return keys[0].type if len(keys) == 1 else pa.struct([(column.name, column.type) for column in keys])

    @property
    def value_type(self) -> pa.DataType:
        return pa.struct([(column.name, column.type) for column in self.values])

    @property
    def value_schema(self) -> Schema:
        found = declared_schema(self.value_type)
        assert found is not None
        return found

    def column(self, name: str) -> SourceColumn | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector and its options, by lower-case name."""

    name: str
    options: Mapping[str, object]
    statement: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """Streams, tables and types by name."""

    sources: Mapping[str, Source] = field(default_factory=dict)
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    built_in: Mapping[str, Source] = field(default_factory=dict)
    """Sources that no statement created. A source of the same name that a statement creates hides them."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Sources that another process created, and why their statements cannot be loaded."""
    connectors: Mapping[str, Connector] = field(default_factory=dict)

    def source(self, name: str, location: SourceLocation | None = None) -> Source:
        """Raises `UnknownName` with the most similar name."""
        found = self.sources.get(name) or self.built_in.get(name)
        if found is None and name in self.missing:
            hint = "it uses a source or a function that is unknown in this process; --functions FILE loads functions"
            message = f"{quoted(name)} exists but cannot be loaded: {self.missing[name]}"
            raise UnknownName(message, hint=hint, location=location)
        if found is None:
            known = ", ".join(map(quoted, sorted(self.sources))) or "none yet"
            hint = closest(name, self.sources) or f"streams and tables: {known}"
            raise UnknownName(f"there is no stream or table {quoted(name)}", hint=hint, location=location)
        return found

    def with_source(self, source: Source) -> Catalog:
        """Add the source at the end, even if it replaces another."""
        others = self.without_source(source.name)
        return replace(others, sources={**others.sources, source.name: source})

    def without_source(self, name: str) -> Catalog:
        sources = {key: source for key, source in self.sources.items() if key != name}
        return replace(self, sources=sources, missing={key: why for key, why in self.missing.items() if key != name})

    def with_missing(self, name: str, why: str) -> Catalog:
        return replace(self, missing={**self.missing, name: why})

    def with_type(self, name: str, type_: pa.DataType) -> Catalog:
        return replace(self, types={**self.types, name: type_})

    def without_type(self, name: str) -> Catalog:
        return replace(self, types={key: type_ for key, type_ in self.types.items() if key != name})

    def connector(self, name: str, location: SourceLocation | None = None) -> Connector:
        """Return a connector. Raises `UnknownName`."""
        if name not in self.connectors:
            hint = closest(name, self.connectors) or "SHOW CONNECTORS lists them"
            raise UnknownName(f"there is no connector {quoted(name)}", hint=hint, location=location)
        return self.connectors[name]

    def with_connector(self, connector: Connector) -> Catalog:
        return replace(self, connectors={**self.connectors, connector.name: connector})

    def without_connector(self, name: str) -> Catalog:
        return replace(self, connectors={key: each for key, each in self.connectors.items() if key != name})

    def readers(self, topics: Iterable[str]) -> list[Source]:
        """Return the sources over any of these topics."""
        wanted = set(topics)
        return [source for source in self.sources.values() if source.topic in wanted]


class AlreadyThere(Refused):
    """A name that is taken."""

    def __init__(self, source: Source, location: SourceLocation | None) -> None:
        super().__init__(
            f"there is a {source.kind.lower()} {quoted(source.name)} already",
            hint=f"choose another name, write CREATE OR REPLACE, or DROP {source.kind} {quoted(source.name)} first",
            location=location,
        )
