"""Read tables and rows of the binary log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pymysqlreplication.constants import FIELD_TYPE
from pymysqlreplication.row_event import TableMapEvent

from potok.sources.cdc.envelopes.changes import Row, Value
from potok.sources.cdc.envelopes.shape import Read, Shape
from potok.sources.cdc.errors import CaptureStopped, NotReady
from potok.sources.cdc.mysql import columns as read
from potok.sources.cdc.mysql import texts
from potok.sources.cdc.mysql.server import ADDRESSES, Server, column_of
from potok.sources.cdc.mysql.types import MysqlType

_INTEGERS = {
    FIELD_TYPE.TINY: ("tinyint", 1),
    FIELD_TYPE.SHORT: ("smallint", 2),
    FIELD_TYPE.INT24: ("mediumint", 3),
    FIELD_TYPE.LONG: ("int", 4),
    FIELD_TYPE.LONGLONG: ("bigint", 8),
}
_BLOBS = {1: "tiny", 2: "", 3: "medium", 4: "long"}
_BINARY = "binary"
_UTF8 = ("utf8mb4", "utf8mb3", "utf8", "ascii")
_ENCODINGS = {
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "ucs2": "utf_16_be",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "sjis": "cp932",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
    "euckr": "euc_kr",
    "macroman": "mac_roman",
    "macce": "mac_latin2",
    **{name: name for name in ("cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "cp932")},
    **{name: name for name in ("big5", "gbk", "gb2312", "gb18030")},
    "tis620": "tis_620",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the values of a column end: so many bytes, or those of a length, which is in front."""

    size: int = 0
    length_size: int = 0


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """A table as the binary log describes it before its changes."""

    shape: Shape
    layouts: tuple[Layout, ...]

    def rows(self, body: bytes) -> list[Row]:
        """Return the rows in the body of an event; of an update, those before and after each change in turn.

        Values stay as they are: they are converted column by column, when many rows are written.
        """
        count = len(self.layouts)
        sizes = [(each.size, each.length_size) for each in self.layouts]
        width, at, end = (count + 7) // 8, 0, len(body)
        every, number_of = (1 << count) - 1, int.from_bytes
        found: list[Row] = []
        while at < end:
            nulls = number_of(body[at : at + width], "little") & every
            at += width
            values: list[Value] = []
            append = values.append
            for size, length_size in sizes:
                if nulls:
                    is_null = nulls & 1
                    nulls >>= 1
                    if is_null:
                        append(None)
                        continue
                if size:
                    until = at + size
                elif length_size == 1:
                    at += 1
                    until = at + body[at - 1]
                else:
                    start = at
                    at += length_size
                    until = at + number_of(body[start:at], "little")
                append(body[at:until])
                at = until
            found.append(tuple(values))
        if at != end:
            raise CaptureStopped(f"rows of table {self.shape.name} are cut off in the binary log")
        return found


def table_of(event: TableMapEvent, server: Server, known: Mapping[str, MysqlType]) -> LoggedTable:
    """Return a table; `known` has the types of the catalog, which tell UUIDs and addresses from bytes."""
    name = f"{event.schema}.{event.table}"
    if not event.optional_metadata.column_name_list:
        raise NotReady(
            f"a session has changed table {name} without the names of its columns in the binary log",
            "SET GLOBAL binlog_row_metadata = 'FULL'",
            "-- reconnect the clients that write, then reset the capture",
        )
    charsets = iter(_charsets(event, server))
    labels = iter(_labels_charsets(event, server))
    columns, layouts = [], []
    keys = _keys(event)
    for number, column in enumerate(event.columns):
        nullable = bool(event.null_bitmask[number // 8] >> number % 8 & 1)
        character = _is_character(column.type, server)
        charset = next(charsets) if character else None
        if column.type in (FIELD_TYPE.ENUM, FIELD_TYPE.SET):
            charset = next(labels)
        try:
            type_, layout, reader = _column(column, charset, known.get(column.name))
        except KeyError as error:
            what = f"the character set {charset[0]}" if charset else f"the type number {column.type}"
            raise CaptureStopped(f'column "{column.name}" of table {name} has {what}, which cannot be read') from error
        described = column_of(column.name, type_._replace(nullable=nullable), server.capture, key=number in keys)
        columns.append(replace(described, read=reader))
        layouts.append(layout)
    return LoggedTable(Shape(event.schema, event.table, tuple(columns)), tuple(layouts))


def _keys(event: TableMapEvent) -> set[int]:
    metadata = event.optional_metadata
    return {*(metadata.simple_primary_key_list or ()), *(metadata.primary_keys_with_prefix or ())}


def _is_character(type_: int, server: Server) -> bool:
    characters = (FIELD_TYPE.STRING, FIELD_TYPE.VAR_STRING, FIELD_TYPE.VARCHAR, FIELD_TYPE.BLOB)
    return type_ in characters or (type_ == FIELD_TYPE.GEOMETRY and server.is_mariadb)


def _charsets(event: TableMapEvent, server: Server) -> list[tuple[str, int]]:
    return [server.charset(each) for each in event.optional_metadata.charset_collation_list or ()]


def _labels_charsets(event: TableMapEvent, server: Server) -> list[tuple[str, int]]:
    return [server.charset(each) for each in event.optional_metadata.enum_and_set_collation_list or ()]


Described = tuple[MysqlType, Layout, Read]


def _column(column: Any, charset: tuple[str, int] | None, known: MysqlType | None) -> Described:
    """Return the type of a column and how its values are read. Raises KeyError for what is not known."""
    code = column.type
    if code in _INTEGERS:
        name, size = _INTEGERS[code]
        return MysqlType(name, column.unsigned), Layout(size), read.integer(size, unsigned=column.unsigned)
    if code in (FIELD_TYPE.FLOAT, FIELD_TYPE.DOUBLE):
        name, size = ("float", 4) if code == FIELD_TYPE.FLOAT else ("double", 8)
        return MysqlType(name, column.unsigned), Layout(size), read.real(size)
    if code == FIELD_TYPE.NEWDECIMAL:
        precision, scale = column.precision, column.decimals
        type_ = MysqlType("decimal", column.unsigned, precision, scale)
        layout = Layout(texts.decimal_size(precision, scale))
        return type_, layout, read.each_value(texts.decimal(precision, scale))
    if code in (FIELD_TYPE.ENUM, FIELD_TYPE.SET):
        return _labelled(column, known)
    if code in _TEMPORAL:
        name, size, make = _TEMPORAL[code]
        return MysqlType(name, scale=column.fsp), Layout(size + (column.fsp + 1) // 2), make(column.fsp)
    if code == FIELD_TYPE.BIT:
        return MysqlType("bit", length=column.bits), Layout((column.bits + 7) // 8), read.bits(column.bits)
    if code == FIELD_TYPE.GEOMETRY:
        return MysqlType("geometry"), Layout(length_size=column.length_size), read.binary()
    if code == FIELD_TYPE.JSON:
        return MysqlType("json"), Layout(length_size=column.length_size), read.each_value(texts.json)
    if charset is not None:
        return _characters(column, charset, known)
    name, size = _SIMPLE[code]
    return MysqlType(name), Layout(size), read.year() if name == "year" else read.date()


def _labelled(column: Any, known: MysqlType | None) -> Described:
    name = "enum" if column.type == FIELD_TYPE.ENUM else "set"
    labels: Sequence[str] = column.enum_values[1:] if name == "enum" else column.set_values
    if known is not None and known.name == name and len(known.labels) >= len(labels):
        # The library leaves out labels that are not UTF-8; those of the catalog are the same, or follow.
        labels = [label or other for label, other in zip(labels, known.labels, strict=False)]
    found = tuple(labels)
    reader = read.label(column.size, found) if name == "enum" else read.labels_set(found)
    return MysqlType(name, labels=found), Layout(column.size), reader


def _characters(column: Any, charset: tuple[str, int], known: MysqlType | None) -> Described:
    name, most = charset
    is_binary = name == _BINARY
    encoding = None if name in _UTF8 or is_binary else _ENCODINGS[name]
    if column.type == FIELD_TYPE.BLOB:
        layout = Layout(length_size=column.length_size)
        size = _BLOBS[column.length_size]
        if is_binary:
            return MysqlType(f"{size}blob"), layout, read.binary()
        return MysqlType(f"{size}text"), layout, read.characters(encoding)
    layout = Layout(length_size=2 if column.max_length > 255 else 1)
    is_fixed = column.type == FIELD_TYPE.STRING
    if is_binary:
        if is_fixed and known is not None and known.name in ADDRESSES:
            return MysqlType(known.name), layout, read.each_value(texts.address(known.name))
        length = column.max_length
        return MysqlType("binary" if is_fixed else "varbinary", length=length), layout, read.binary(length * is_fixed)
    type_ = MysqlType("char" if is_fixed else "varchar", length=column.max_length // most)
    return type_, layout, read.characters(encoding)


def _time(scale: int) -> Read:
    return read.each_value(texts.time(scale))


_TEMPORAL = {
    FIELD_TYPE.DATETIME2: ("datetime", 5, read.date_time),
    FIELD_TYPE.TIMESTAMP2: ("timestamp", 4, read.timestamp),
    FIELD_TYPE.TIME2: ("time", 3, _time),
}
_SIMPLE = {FIELD_TYPE.YEAR: ("year", 1), FIELD_TYPE.DATE: ("date", 3), FIELD_TYPE.NEWDATE: ("date", 3)}
