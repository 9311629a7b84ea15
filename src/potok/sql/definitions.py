"""What stands behind a name: CREATE statements as sources, WITH clauses as formats and topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from potok.duration import NotADuration, to_ms
from potok.errors import SchemaError
from potok.log.embedded.catalog import check_topic_name
from potok.log.errors import InvalidName
from potok.log.upkeep import CLEANUP_POLICIES
from potok.records.formats.format import format_named
from potok.sql.catalog import Catalog, Source, SourceColumn, WindowShape
from potok.sql.errors import Place, Refused, TypeMistake, closest
from potok.sql.functions.java_dates.patterns import BadPattern, pattern_of
from potok.sql.lowering.scope import PSEUDO, WINDOW_BOUNDS
from potok.sql.lowering.sources import HEADER_ROWS
from potok.sql.syntax import ast
from potok.sql.syntax.type_names import resolve
from potok.sql.types import BIGINT, BYTES, DOUBLE, INT, TIMESTAMP, VARCHAR, quoted, type_name

KEYS = (
    "KAFKA_TOPIC",
    "PARTITIONS",
    "REPLICAS",
    "RETENTION_MS",
    "CLEANUP_POLICY",
    "FORMAT",
    "KEY_FORMAT",
    "VALUE_FORMAT",
    "KEY_DELIMITER",
    "VALUE_DELIMITER",
    "WRAP_SINGLE_VALUE",
    "TIMESTAMP",
    "TIMESTAMP_FORMAT",
    "WINDOW_TYPE",
    "WINDOW_SIZE",
    "HISTORY",
)

FORMATS = {
    "JSON": "sql_json",
    "DELIMITED": "sql_delimited",
    "KAFKA": "kafka",
    "NONE": "none",
    "AVRO": "avro",
    "PROTOBUF": "protobuf",
}
_WITH_REGISTRY = ("JSON_SR", "PROTOBUF_NOSR")
_KAFKA_TYPES = (INT, BIGINT, DOUBLE, VARCHAR, BYTES)

Value = bool | int | Decimal | float | str | None


@dataclass(frozen=True, slots=True)
class Options:
    """A WITH clause, checked. `place` is that of its statement."""

    given: Mapping[str, ast.Property]
    place: Place

    @classmethod
    def of(cls, properties: ast.Properties, place: Place, allowed: Sequence[str] = KEYS) -> Options:
        given: dict[str, ast.Property] = {}
        for found in properties:
            name = found.name
            if name not in allowed:
                hint = closest(name, allowed) or f"the keys are {', '.join(allowed)}"
                raise Refused(f"WITH has no {name}", hint=hint, place=found.at)
            if name in given:
                raise Refused(f"{name} is there twice", hint="leave one of them out", place=found.at)
            given[name] = found
        return cls(given, place)

    def at(self, *names: str) -> Place:
        """Where the value of the first of these stands that is given; else the place of the statement."""
        return next((self.given[name].value_at for name in names if name in self.given), self.place)

    def _value(self, name: str) -> Value:
        return self.given[name].value if name in self.given else None

    def text(self, name: str) -> str:
        value = self._value(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise Refused(f"{name} is a text", hint=f"write {name} = '{value}'", place=self.at(name))
        return value

    def count(self, name: str, least: int = 1) -> int | None:
        value = self._value(name)
        if value is None:
            return None
        try:
            number = int(str(value))
        except ValueError:
            number = least - 1
        if isinstance(value, bool) or number < least:
            raise Refused(
                f"{name} is a number from {least} on, not {value!r}", hint=f"write {name} = 4", place=self.at(name)
            )
        return number

    def flag(self, name: str) -> bool | None:
        value = self._value(name)
        if isinstance(value, str) and value.upper() in ("TRUE", "FALSE"):
            return value.upper() == "TRUE"
        if value is not None and not isinstance(value, bool):
            raise Refused(f"{name} is true or false", hint=f"write {name} = false", place=self.at(name))
        return value

    def format(self, side: str, default: str) -> str:
        """The name of the format of `KEY` or `VALUE`, with its options."""
        place = self.format_at(side)
        chosen = (self.text(f"{side}_FORMAT") or self.text("FORMAT") or default).upper()
        if self.text("FORMAT") and self.text(f"{side}_FORMAT"):
            hint = "write FORMAT for both, or KEY_FORMAT and VALUE_FORMAT"
            raise Refused(
                f"FORMAT and {side}_FORMAT exclude each other", hint=hint, place=self.given[f"{side}_FORMAT"].at
            )
        if chosen in _WITH_REGISTRY:
            hint = f"write {chosen.split('_')[0]}: the columns of the statement are the schema"
            raise Refused(f"{chosen} needs a schema registry", hint=hint, place=place)
        if chosen not in FORMATS:
            hint = closest(chosen, FORMATS) or f"the formats are {', '.join(FORMATS)}"
            raise Refused(f"there is no format {chosen}", hint=hint, place=place)
        delimiter = self.text(f"{side}_DELIMITER")
        if delimiter and chosen != "DELIMITED":
            hint = f"leave it out, or write {side}_FORMAT = 'DELIMITED'"
            at = self.given[f"{side}_DELIMITER"].at
            raise Refused(f"{side}_DELIMITER is for DELIMITED, not {chosen}", hint=hint, place=at)
        name = FORMATS[chosen]
        return self._delimited(name, side, delimiter) if delimiter else name

    def format_at(self, side: str) -> Place:
        """Where the format of `KEY` or `VALUE` is named."""
        return self.at(f"{side}_FORMAT", "FORMAT")

    def _delimited(self, name: str, side: str, delimiter: str) -> str:
        named = f"{name};delimiter={delimiter}"
        try:
            format_named(named)
        except SchemaError as error:
            place = self.at(f"{side}_DELIMITER")
            raise Refused(f"{side}_DELIMITER cannot be '{delimiter}'", hint=error.hint, place=place) from error
        return named

    def topic(self, otherwise: str) -> str:
        """The topic that is named, or else `otherwise`."""
        name = self.text("KAFKA_TOPIC") or otherwise
        try:
            check_topic_name(name)
        except InvalidName as error:
            hint = error.hint if self.text("KAFKA_TOPIC") else f"add WITH (KAFKA_TOPIC = '...'): {error.hint}"
            raise Refused(error.message, hint=hint, place=self.at("KAFKA_TOPIC")) from error
        return name

    def cleanup_policy(self) -> str:
        given = self.text("CLEANUP_POLICY").lower()
        if given and given not in CLEANUP_POLICIES:
            hint = f"write {', '.join(repr(policy) for policy in CLEANUP_POLICIES)}"
            raise Refused(f"there is no CLEANUP_POLICY '{given}'", hint=hint, place=self.at("CLEANUP_POLICY"))
        return given

    def unwrapped(self, format_: str, columns: Sequence[SourceColumn]) -> str:
        """The format of values, which are bare where WRAP_SINGLE_VALUE is false."""
        wrap = self.flag("WRAP_SINGLE_VALUE")
        if wrap is None:
            return format_
        if len(columns) != 1:
            hint = "leave it out: values of several columns are always wrapped"
            place = self.given["WRAP_SINGLE_VALUE"].at
            raise Refused("WRAP_SINGLE_VALUE is for values of one column", hint=hint, place=place)
        return format_ if wrap else f"{format_};wrap=false"

    def window(self) -> WindowShape | None:
        kind = self.text("WINDOW_TYPE").upper()
        size = self.text("WINDOW_SIZE")
        if not kind:
            if size:
                place = self.given["WINDOW_SIZE"].at
                raise Refused("WINDOW_SIZE needs WINDOW_TYPE", hint="write WINDOW_TYPE = 'TUMBLING'", place=place)
            return None
        if kind not in ("TUMBLING", "HOPPING", "SESSION"):
            hint = "write WINDOW_TYPE = 'TUMBLING', 'HOPPING' or 'SESSION'"
            raise Refused(f"there are no {kind} windows", hint=hint, place=self.at("WINDOW_TYPE"))
        if (kind == "SESSION") == bool(size):
            hint = "sessions have no size" if size else "write WINDOW_SIZE = '1 HOUR'"
            place = self.given["WINDOW_SIZE"].at if size else self.at("WINDOW_TYPE")
            raise Refused(f"WINDOW_SIZE {'is not for' if size else 'is missing for'} {kind}", hint=hint, place=place)
        return WindowShape(kind, self._duration("WINDOW_SIZE", size) if size else None)

    def history(self, statement: ast.CreateSource) -> int | None:
        """How long versions of rows are kept."""
        text = self.text("HISTORY")
        if not text:
            return None
        if not statement.is_table or not statement.read_only:
            hint = "write CREATE SOURCE TABLE ... WITH (HISTORY = '7 DAYS')"
            raise Refused("HISTORY is for tables whose rows are kept", hint=hint, place=self.given["HISTORY"].at)
        return self._duration("HISTORY", text)

    def _duration(self, name: str, text: str) -> int:
        try:
            return to_ms(text.lower())
        except NotADuration as error:
            raise Refused(f"{name} is a duration, not {text!r}", hint="write '1 HOUR'", place=self.at(name)) from error


def columns_of(statement: ast.CreateSource, catalog: Catalog) -> tuple[SourceColumn, ...]:
    """The columns of a statement, checked: names once, keys as the kind of source wants them."""
    found: list[SourceColumn] = []
    for column in statement.columns:
        type_ = resolve(column.type, catalog.types)
        _check_name(column, found)
        _check_role(column, statement)
        header = None
        if column.role.startswith("HEADER"):
            header = column.header
            wanted = BYTES if header else HEADER_ROWS
            if type_ != wanted:
                role = f"HEADER('{header}')" if header else column.role
                hint = f"write {quoted(column.name)} {type_name(wanted)} {role}"
                raise TypeMistake(f"{quoted(column.name)} is {type_name(type_)}", hint=hint, place=column.at)
        found.append(SourceColumn(column.name, type_, "KEY" in column.role, header))
    if statement.is_table and not any(column.is_key for column in found):
        hint = "say which: id INT PRIMARY KEY"
        raise Refused(f"table {quoted(statement.name)} needs a primary key", hint=hint, place=statement.at)
    return tuple(found)


def _check_name(column: ast.ColumnDefinition, found: Sequence[SourceColumn]) -> None:
    if column.name in (*PSEUDO, *WINDOW_BOUNDS):
        hint = "every record has it without a declaration; choose another name"
        raise Refused(f"{column.name} is a name of the system's", hint=hint, place=column.at)
    if any(other.name == column.name for other in found):
        hint = "give each column a name of its own"
        raise Refused(f"column {quoted(column.name)} is there twice", hint=hint, place=column.at)


def _check_role(column: ast.ColumnDefinition, statement: ast.CreateSource) -> None:
    if column.role == "KEY" and statement.is_table:
        hint = f"write {quoted(column.name)} ... PRIMARY KEY"
        raise Refused("the key of a table is a PRIMARY KEY", hint=hint, place=column.at)
    if column.role == "PRIMARY KEY" and not statement.is_table:
        hint = f"write {quoted(column.name)} ... KEY; a stream may have many records of one key"
        raise Refused("the key of a stream is a KEY", hint=hint, place=column.at)


def defined(statement: ast.CreateSource, catalog: Catalog, text: str) -> Source:
    """The source that a CREATE statement with columns stands for."""
    options = Options.of(statement.properties, statement.at)
    if not options.text("KAFKA_TOPIC"):
        hint = f"add WITH (KAFKA_TOPIC = '{statement.name.lower()}', VALUE_FORMAT = 'JSON')"
        raise Refused("KAFKA_TOPIC is missing", hint=hint, place=statement.at)
    columns = columns_of(statement, catalog)
    keys = tuple(column for column in columns if column.is_key)
    values = tuple(column for column in columns if not column.is_key and column.header is None)
    value_format = options.unwrapped(options.format("VALUE", "JSON"), values)
    key_format = key_format_of(options, keys, "KAFKA")
    check_format(value_format, values, options.format_at("VALUE"), "VALUE")
    return Source(
        statement.name,
        statement.is_table,
        columns,
        options.topic(""),
        key_format,
        value_format,
        timestamp=timestamp_of(options, columns),
        timestamp_format=options.text("TIMESTAMP_FORMAT"),
        window=options.window(),
        read_only=statement.read_only,
        partitions=options.count("PARTITIONS"),
        retention_ms=options.count("RETENTION_MS", least=-1),
        cleanup_policy=options.cleanup_policy(),
        history_ms=options.history(statement),
        statement=text,
    )


def key_format_of(options: Options, keys: Sequence[SourceColumn], default: str) -> str:
    """The format of the key; what KAFKA cannot write goes as JSON, unless KAFKA was asked for."""
    asked = bool(options.text("KEY_FORMAT") or options.text("FORMAT"))
    if not asked and default == "KAFKA" and not _kafka_can(keys):
        default = "JSON"
    format_ = options.format("KEY", default if keys else "NONE")
    if not keys:
        return "none"
    check_format(format_, keys, options.format_at("KEY"), "KEY")
    return format_


def _kafka_can(columns: Sequence[SourceColumn]) -> bool:
    return len(columns) == 1 and columns[0].type in _KAFKA_TYPES


def check_format(format_: str, columns: Sequence[SourceColumn], place: Place, side: str) -> None:
    """Raise where a format cannot hold these columns."""
    if format_.startswith("kafka") and not _kafka_can(columns):
        shown = ", ".join(f"{quoted(column.name)} {type_name(column.type)}" for column in columns)
        hint = f"write {side}_FORMAT = 'JSON'; KAFKA is for one column of INT, BIGINT, DOUBLE, VARCHAR or BYTES"
        raise Refused(f"KAFKA cannot hold {shown}", hint=hint, place=place)
    if format_.startswith("none") and side == "VALUE" and columns:
        raise Refused("NONE holds no columns", hint="write VALUE_FORMAT = 'JSON'", place=place)
    mapped = next((column for column in columns if side == "KEY" and _holds_map(column.type)), None)
    if mapped is not None:
        hint = "a map has no order, so equal keys could be written as different bytes; choose its values: m['name']"
        shown = f"{quoted(mapped.name)} {type_name(mapped.type)}"
        raise Refused(f"a key cannot hold a MAP, as {shown} does", hint=hint, place=place)
    nested = next((column for column in columns if pa.types.is_nested(column.type)), None)
    if format_.startswith("sql_delimited") and nested is not None:
        hint = f"write {side}_FORMAT = 'JSON'"
        raise Refused(
            f"DELIMITED cannot hold {quoted(nested.name)}, which is {type_name(nested.type)}", hint=hint, place=place
        )


def _holds_map(type_: pa.DataType) -> bool:
    if pa.types.is_list(type_):
        return _holds_map(type_.value_type)
    if pa.types.is_struct(type_):
        return any(_holds_map(field.type) for field in type_)
    return bool(pa.types.is_map(type_))


def timestamp_of(options: Options, columns: Sequence[SourceColumn]) -> str:
    """The column that WITH takes for the time of records; "" if it names none."""
    name = options.text("TIMESTAMP")
    if not name:
        return ""
    place = options.at("TIMESTAMP")
    folded = name.strip("`") if name.startswith("`") else name.upper()
    column = next((column for column in columns if column.name == folded), None)
    if column is None:
        hint = closest(folded, [c.name for c in columns]) or f"the columns are {', '.join(c.name for c in columns)}"
        raise Refused(f"TIMESTAMP names no column: {name}", hint=hint, place=place)
    text = options.text("TIMESTAMP_FORMAT")
    if column.type == VARCHAR and not text:
        hint = "add TIMESTAMP_FORMAT = 'yyyy-MM-dd''T''HH:mm:ss'"
        raise Refused(f"{quoted(column.name)} is text: how is it read?", hint=hint, place=place)
    if column.type not in (BIGINT, TIMESTAMP, VARCHAR):
        hint = "choose a column of type BIGINT, TIMESTAMP or VARCHAR"
        raise TypeMistake(f"{quoted(column.name)} is {type_name(column.type)}", hint=hint, place=place)
    if text:
        _check_pattern(text, options)
    return column.name


def _check_pattern(text: str, options: Options) -> None:
    try:
        pattern_of(text)
    except BadPattern as error:
        hint = "write a pattern of Java's: 'yyyy-MM-dd HH:mm:ss'"
        place = options.at("TIMESTAMP_FORMAT")
        raise Refused(f"TIMESTAMP_FORMAT '{text}' is none: {error}", hint=hint, place=place) from error
