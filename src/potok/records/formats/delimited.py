"""Comma-separated fields, by position; a field that contains a comma, a quote or a line break is in double
quotes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import SchemaError
from potok.records.conversion.convert import MisfitError, Reading
from potok.records.conversion.fit import fit
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.formats.text import cell_reader, cell_texts, decode_utf8
from potok.records.rows import column_of
from potok.records.schemas.schema import Field, Schema

_CELL = re.compile(r'"((?:[^"]|"")*)"|([^",]*)')
_NEEDS_QUOTES = r'[",\r\n]|^$'


@dataclass(frozen=True, slots=True)
class DelimitedFormat:
    """One line of comma-separated fields per value; an empty field is null, `""` is an empty text."""

    name: str = "delimited"

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        values = binary_column(values)
        whole = _needed(schema)
        struct = _as_struct(whole)
        selected = struct.select(columns) if whole.kind == "struct" else struct
        wanted = [(struct.names.index(field.name), field.name, cell_reader(field.schema)) for field in selected.fields]
        texts, errors = decode_utf8(values)
        rows: list[dict[str, Any] | None] = [None] * len(values)
        for row, text in enumerate(texts.to_pylist()):
            if text is not None:
                try:
                    cells = _split(text, len(struct.fields))
                except MisfitError as misfit:
                    errors[row] = str(misfit)
                    continue
                rows[row] = {name: _read(cells[index], read) for index, name, read in wanted}
        fitted = fit(rows, selected, Reading.JSON)
        column = fitted.column if whole.kind == "struct" else pc.struct_field(fitted.column, "value")
        return Decoded(column, {**fitted.errors, **errors})

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        if isinstance(column, list):
            fitted = column_of(column, _needed(schema))
            return Encoded(self.encode(fitted.column, schema).values, fitted.errors)
        fields = column.flatten() if pa.types.is_struct(column.type) else [column]
        cells = [_quote(cell_texts(field)) for field in fields]
        lines = pc.binary_join_element_wise(*cells, ",") if cells else pa.repeat("", len(column))
        return Encoded(pc.if_else(column.is_valid(), lines, None).cast(pa.binary()))


def _needed(schema: Schema | None) -> Schema:
    if schema is None:
        raise SchemaError(
            "delimited values need a declared type: their fields have no names",
            hint='declare one, for example value="order_id string, amount double"',
        )
    return schema


def _as_struct(schema: Schema) -> Schema:
    return schema if schema.kind == "struct" else Schema.struct([Field("value", schema)])


def _read(cell: str | None, read: Any) -> Any:
    return None if cell is None else read(cell)


def _split(text: str, expected: int) -> list[str | None]:
    cells = [cell or None for cell in text.split(",")] if '"' not in text else _split_quoted(text)
    if len(cells) != expected:
        raise MisfitError(f"expected {expected} fields, got {len(cells)}")
    return cells


def _split_quoted(text: str) -> list[str | None]:
    cells: list[str | None] = []
    position = 0
    while True:
        found = _CELL.match(text, position)
        assert found is not None
        quoted, plain = found.groups()
        cells.append(quoted.replace('""', '"') if quoted is not None else plain or None)
        position = found.end()
        if position == len(text):
            return cells
        if text[position] != ",":
            raise MisfitError(f"unexpected quote at character {position + 1}")
        position += 1


def _quote(texts: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(texts, _NEEDS_QUOTES).fill_null(False)
    if pc.any(special).as_py():
        doubled = pc.replace_substring(texts, '"', '""')
        texts = pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), texts)
    return texts.fill_null("")
