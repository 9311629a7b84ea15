"""The `sql_delimited` format: fields by position, separated by any one character, compatible with ksqlDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from potok.compat.java.doubles import double_texts
from potok.errors import SchemaError
from potok.records.conversion.convert import MisfitError, describe
from potok.records.conversion.fit import fit
from potok.records.conversion.lenient import LENIENT
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.formats.json.encode import base64_of
from potok.records.formats.lenient.json_format import lenient_scalars
from potok.records.formats.text import decode_utf8
from potok.records.rows import column_of
from potok.records.schemas.schema import Field, Schema

_NAMED = {"TAB": "\t", "SPACE": " "}
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class LenientDelimitedFormat:
    """One line per value, quoted as by Java's commons-csv 1.4, which ksqlDB uses. An empty field, quoted or not, is
    null. Timestamps, dates and times are numbers.

    `delimiter` is one character, or TAB or SPACE.
    """

    delimiter: str = ","
    name: str = "sql_delimited"

    def __post_init__(self) -> None:
        if len(self._sign) != 1 or self._sign in '"\r\n' or (self._sign.isspace() and len(self.delimiter) == 1):
            raise SchemaError(
                f'"{self.delimiter}" cannot be a delimiter',
                hint="use one character other than a quote, or TAB or SPACE",
            )

    @property
    def _sign(self) -> str:
        return _NAMED.get(self.delimiter.upper(), self.delimiter)

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        values = binary_column(values)
        whole = _checked(schema)
        struct = whole if whole.kind == "struct" else Schema.struct([Field("VALUE", whole)])
        selected = struct.select(columns) if whole.kind == "struct" else struct
        wanted = [(struct.names.index(field.name), field.name, _reader(field.type)) for field in selected.fields]
        split = _splitter(self._sign, len(struct.fields))
        texts, errors = decode_utf8(values)
        rows: list[dict[str, Any] | None] = [None] * len(values)
        for row, text in enumerate(texts.to_pylist()):
            if text is not None:
                try:
                    cells = split(text)
                    rows[row] = {name: read(cells[index]) for index, name, read in wanted if cells[index]}
                except MisfitError as misfit:
                    errors[row] = str(misfit)
        fitted = fit(rows, selected, LENIENT)
        column = fitted.column if whole.kind == "struct" else pc.struct_field(fitted.column, indices=[0])
        return Decoded(column, {**fitted.errors, **errors})

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        if isinstance(column, list):
            fitted = column_of(column, _checked(schema))
            return Encoded(self.encode(fitted.column, schema).values, fitted.errors)
        _checked(schema)
        fields = column.flatten() if pa.types.is_struct(column.type) else [column]
        cells = [self._quoted(_texts(field), first=index == 0) for index, field in enumerate(fields)]
        lines = pc.binary_join_element_wise(*cells, self._sign) if cells else pa.repeat("", len(column))
        return Encoded(pc.if_else(column.is_valid(), lines, None).cast(pa.binary()))

    def _quoted(self, texts: pa.Array, *, first: bool) -> pa.Array:
        """Quote texts that contain a delimiter, a quote or a line break, or that start or end with white space.

        The first field of a line is also quoted if it is empty (but not if it is NULL), or starts with anything but an
        ASCII letter or digit, such as the minus of a negative number.
        """
        odd = rf'[\r\n"{re.escape(self._sign)}]|^[\x00-#]|[\x00- ]$' + (r"|^$|^[^0-9A-Za-z]" if first else "")
        special = pc.match_substring_regex(texts, odd).fill_null(False)
        texts = texts.fill_null("")
        if not pc.any(special).as_py():
            return texts
        doubled = pc.replace_substring(texts, '"', '""')
        return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _checked(schema: Schema | None) -> Schema:
    if schema is None:
        raise SchemaError(
            "delimited values need a declared type: their fields have no names",
            hint="declare the columns, for example (ID BIGINT, NAME VARCHAR)",
        )
    for field in schema.fields or (Field("VALUE", schema),):
        if schema.arrow != pa.struct([]) and field.schema.kind != "scalar":
            raise SchemaError(
                f'format "sql_delimited" cannot hold "{field.schema}" of column "{field.name}"',
                hint="use JSON, AVRO or PROTOBUF for arrays, maps and structs",
            )
    return schema


def _reader(arrow: pa.DataType) -> Callable[[str], Any]:
    """Return a function that prepares a field for the conversion rules: strip white space, except from strings."""
    if pa.types.is_string(arrow):
        return lambda text: text
    if not pa.types.is_boolean(arrow):
        return str.strip

    def boolean(text: str) -> bool:
        found = _BOOLEANS.get(text.strip().lower())
        if found is None:
            raise MisfitError(f"expected true or false, got {describe(text)}")
        return found

    return boolean


def _texts(column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_binary(column.type):
        return base64_of(column)
    texts = lenient_scalars(column)
    if not pa.types.is_floating(column.type):
        return texts
    return double_texts(column, pc.utf8_trim(texts, characters='"'))


def _splitter(sign: str, expected: int) -> Callable[[str], list[str]]:
    apart = re.escape(sign)
    # White space after a closing quote is not part of the field.
    cell = re.compile(rf'"((?:[^"]|"")*)"[^\S{apart}\r\n]*(?={apart}|$)|(?!")([^{apart}\r\n]*)')

    def quoted(text: str) -> list[str]:
        cells: list[str] = []
        position = 0
        while True:
            found = cell.match(text, position)
            if found is None:
                raise MisfitError(f"the quote at character {position + 1} is not closed before the end of its field")
            inside, plain = found.groups()
            cells.append(plain if inside is None else inside.replace('""', '"'))
            position = found.end()
            if position == len(text):
                return cells
            if text[position] != sign:
                raise MisfitError(f"a second line begins at character {position + 1}")
            position += 1

    def split(text: str) -> list[str]:
        text = text.rstrip("\r\n")
        if not text:
            raise MisfitError("the value is empty")
        simple = '"' not in text and "\n" not in text and "\r" not in text
        cells = text.split(sign) if simple else quoted(text)
        if len(cells) != expected:
            raise MisfitError(f"expected {expected} fields, got {len(cells)}")
        return cells

    return split
