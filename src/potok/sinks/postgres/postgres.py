"""Maintain the rows of a PostgreSQL table by key: a value is upserted, a null value deletes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from potok.errors import TopologyError
from potok.extras import need_extra
from potok.records.formats.format import Column
from potok.sinks.guarantee import Guarantee
from potok.sinks.json_bodies import null_values
from potok.sinks.postgres.columns import column_texts
from potok.sinks.sink_spec import Failures, Opening, Prepared, Rows, SinkSpec, SinkWriter, Types
from potok.sinks.table_columns import THERE, TableColumn, null_keys, table_columns
from potok.sinks.urls import address_of, clear_url

SCHEMES = ("postgresql", "postgres")

NO_ROW = "a null value does not say which row to delete: omit key=, and set the key of the records with select_key"


@dataclass(frozen=True, slots=True)
class PostgresTarget(SinkSpec):
    """A table. The URL may contain a password and is not shown."""

    verb: ClassVar[str] = "to_postgres"

    url: str = field(repr=False)
    table: str
    key: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    give_up_after_ms: int | None

    @property
    def label(self) -> str:
        return f'table "{self.table}" at {address_of(self.url)}'

    def check(self, types: Types, guarantee: Guarantee) -> None:
        need_extra("to_postgres", "postgres")
        if self.url.partition(":")[0] not in SCHEMES:
            raise TopologyError("this is not a PostgreSQL server", hint='write "postgresql://user@localhost/shop"')
        clear_url(self.url)
        if not all(self.table.split(".")) or self.table.count(".") > 1:
            raise TopologyError(f'"{self.table}" is not a table', hint='write "orders", or "shop.orders" with a schema')
        self.columns(types)

    def columns(self, types: Types) -> tuple[TableColumn, ...]:
        return table_columns(types, self.key, dict(self.renamed))

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """Return all columns as text: the key columns as one struct, the others as a second one with a flag for a
        present value."""
        failures: Failures = dict.fromkeys(null_values(rows.value), NO_ROW) if self.key else {}
        keys: list[tuple[TableColumn, pa.Array]] = []
        values: list[tuple[TableColumn, pa.Array]] = []
        for column in self.columns(types):
            texts = column_texts(column, rows.key if column.is_key and not self.key else rows.value)
            failures = {**texts.errors, **failures}
            (keys if column.is_key else values).append((column, texts.values))
        failures = {**null_keys(keys), **failures}
        there = (pa.field(THERE, pa.bool_()), _valid(rows.value))
        return Prepared(_struct(keys), _struct(values, there), failures)

    def open(self, opening: Opening) -> SinkWriter:
        from potok.sinks.postgres.writer import PostgresWriter  # which loads the driver

        return PostgresWriter(self, opening)


def _valid(column: Column) -> pa.Array:
    if isinstance(column, list):
        return pa.array([value is not None for value in column], pa.bool_())
    return column.is_valid()


def _struct(columns: list[tuple[TableColumn, pa.Array]], *more: tuple[pa.Field, pa.Array]) -> pa.StructArray:
    texts = [(pa.field(column.name, pa.string()), array.cast(pa.string())) for column, array in columns]
    both = [*more, *texts]
    return pa.StructArray.from_arrays([array for _, array in both], fields=[found for found, _ in both])
