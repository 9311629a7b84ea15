"""Records as rows of typed columns: appended one after the other, or maintained by key."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import Literal, cast

import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import TopologyError
from potok.sinks.file_formats import INSTANT, table_of
from potok.sinks.json_bodies import null_values
from potok.sinks.key_texts import keys_as_texts
from potok.sinks.sink_spec import Failures, Prepared, Rows, Types
from potok.sinks.table_columns import THERE, TableColumn, null_keys, table_columns

Mode = Literal["append", "upsert"]

NO_ROW = "a null value does not say which row to delete: omit key=, and set the key of the records with select_key"

NO_VALUE = 'a null value is no row: pass with_key=True, or mode="upsert", where it deletes the row of its key'

_NOT_A_KEY = (pa.types.is_nested, pa.types.is_floating)


@dataclass(frozen=True, slots=True)
class RowShape:
    """The columns of the rows, and what a record does: `append` adds a row, `upsert` replaces or deletes one."""

    mode: Mode
    key: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    with_key: bool = False

    @property
    def upserts(self) -> bool:
        return self.mode == "upsert"

    def check(self, types: Types) -> None:
        """Raise for records that have no typed columns, and for options that contradict each other."""
        if self.mode not in ("append", "upsert"):
            raise TopologyError(f'there is no mode "{self.mode}"', hint='write mode="append" or mode="upsert"')
        if self.upserts and self.with_key:
            raise TopologyError("with_key= is for appended rows", hint="leave it out: the key has columns of its own")
        if self.key and not self.upserts:
            raise TopologyError("key= is for rows that are replaced", hint='pass mode="upsert" too, or leave key= out')
        untyped = "values" if types.value is None else "keys" if self.with_key and types.key is None else ""
        if untyped:
            hint = f"declare it where the {untyped} are made, for example value=Order"
            raise TopologyError(f"a table has typed columns, and these {untyped} have no type", hint=hint)
        strange = [column.name for column in self._key_columns(types) if _is_nested(column)]
        if strange:
            hint = "key= names other fields of the value; or give records another key with select_key"
            raise TopologyError(f'rows cannot be identified by the column "{strange[0]}"', hint=hint)
        self.schema(types)

    def schema(self, types: Types) -> pa.Schema:
        """Return the columns, those of the key first."""
        if self.upserts:
            columns = table_columns(types, self.key, dict(self.renamed))
            return pa.schema([(column.name, column.type or pa.string()) for column in columns])
        assert types.value is not None
        if self.with_key:
            fields = [pa.field("key", types.key), pa.field("timestamp", INSTANT), pa.field("value", types.value)]
        elif pa.types.is_struct(types.value):
            fields = list(types.value)
        else:
            fields = [pa.field("value", types.value)]
        return pa.schema([field.with_name(name) for field, name in zip(fields, self._names(fields), strict=True)])

    def key_names(self, types: Types) -> list[str]:
        return [column.name for column in self._key_columns(types)]

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """In a task: return each row as a struct. Of rows that are replaced, the first field shows whether there is a
        value."""
        if self.upserts:
            columns, failures = self._keyed(rows, types)
        else:
            table = table_of(rows, with_key=self.with_key)
            names = self._names([table.schema.field(number) for number in range(table.num_columns)])
            columns = dict(zip(names, (_whole(column) for column in table.columns), strict=True))
            failures = {} if self.with_key else dict.fromkeys(null_values(rows.value), NO_VALUE)
        structs = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
        return Prepared(pa.nulls(len(rows), pa.bool_()), structs, failures)

    def _keyed(self, rows: Rows, types: Types) -> tuple[dict[str, pa.Array], Failures]:
        assert types.value is not None
        assert not isinstance(rows.value, list)
        failures: Failures = dict.fromkeys(null_values(rows.value), NO_ROW) if self.key else {}
        values = _fields(rows.value)
        if self.key:
            keys = values
        elif types.key is None or isinstance(rows.key, list):
            texts = keys_as_texts(rows.key, required=True)
            keys, failures = {"": texts.values}, {**failures, **texts.errors}
        else:
            keys = _fields(rows.key)
        columns: dict[str, pa.Array] = {THERE: rows.value.is_valid()}
        found: list[tuple[TableColumn, pa.Array]] = []
        for column in table_columns(types, self.key, dict(self.renamed)):
            columns[column.name] = (keys if column.is_key else values)[column.field]
            if column.is_key:
                found.append((column, columns[column.name]))
        return columns, {**null_keys(found), **failures}

    def _key_columns(self, types: Types) -> list[TableColumn]:
        if not self.upserts:
            return []
        return [column for column in table_columns(types, self.key, dict(self.renamed)) if column.is_key]

    def _names(self, fields: list[pa.Field]) -> list[str]:
        renamed, known = dict(self.renamed), [field.name for field in fields]
        missing = [name for name in renamed if name not in known]
        if missing:
            hint = "there are " + ", ".join(f'"{name}"' for name in known)
            raise TopologyError(f'columns= renames "{missing[0]}", which is not there', hint=hint)
        return [renamed.get(name, name) for name in known]


def rows_as_table(rows: Rows) -> pa.Table:
    """Return prepared rows as a table."""
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(cast(pa.StructArray, rows.value))])


def last_of_keys(table: pa.Table, keys: list[str]) -> pa.Table:
    """Return the last row of each key, in order."""
    numbers = pa.array(range(len(table)), pa.int64())
    numbered = table.select(keys).append_column(THERE, numbers)
    last = numbered.group_by(keys, use_threads=False).aggregate([(THERE, "max")]).column(f"{THERE}_max")
    return table if len(last) == len(table) else table.take(last.take(pc.sort_indices(last)))


def digest_of(rows: pa.Table) -> bytes:
    """Return a digest of the content: the same for the same rows, whatever lies in memory under their nulls.

    The footer of Parquet, which names the version of the library, is left out.
    """
    import pyarrow.parquet as pq  # slow to import

    out = io.BytesIO()
    pq.write_table(rows, out, compression="none", use_dictionary=False, write_statistics=False, store_schema=False)
    data = out.getvalue()
    footer = 8 + int.from_bytes(data[-8:-4], "little")
    return hashlib.blake2b(str(rows.schema).encode() + data[:-footer], digest_size=16).digest()


def _is_nested(column: TableColumn) -> bool:
    return column.type is not None and any(matches(column.type) for matches in _NOT_A_KEY)


def _fields(column: pa.Array) -> dict[str, pa.Array]:
    """Return the fields of structs by name; anything else is the field without a name. A null has null fields."""
    if not pa.types.is_struct(column.type):
        return {"": column}
    return dict(zip((field.name for field in column.type), column.flatten(), strict=True))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
