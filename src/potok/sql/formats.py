"""Formats in SQL: what each can hold, and how a WITH clause selects one for keys and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.errors import SchemaError
from potok.records.formats.registry import format_named
from potok.sql.catalog import Source, SourceColumn
from potok.sql.errors import Refused, SourceLocation, closest
from potok.sql.properties import KEY_FORMAT, VALUE_FORMAT, WRAP_SINGLE_VALUES, Properties
from potok.sql.registered_formats import REGISTERED, check_registered, registered_options
from potok.sql.types import BIGINT, BOOLEAN, BYTES, DOUBLE, INT, TIMESTAMP, VARCHAR, quoted, type_name
from potok.sql.with_clause import Options

FORMATS = {
    "JSON": "sql_json",
    "DELIMITED": "sql_delimited",
    "KAFKA": "kafka",
    "NONE": "none",
    "AVRO": "avro",
    "PROTOBUF": "protobuf",
    "PROTOBUF_NOSR": "protobuf_nosr",
    "CLOUDEVENTS": "cloudevents",
    "DEBEZIUM": "debezium",
}
SQL_NAMES = {format_: name for name, format_ in (*FORMATS.items(), *REGISTERED.items())} | {
    "debezium_key": "DEBEZIUM",
    "debezium_envelope": "DEBEZIUM",
}

_WRAPPING = {
    "JSON": (True, False),
    "DELIMITED": (False,),
    "KAFKA": (),
    "NONE": (),
    "CLOUDEVENTS": (True,),
    "DEBEZIUM": (True,),
}
"""Allowed values of WRAP_SINGLE_VALUE. Other formats allow both."""

_OWN_OPTIONS = {
    "DELIMITER": ("delimiter", ("DELIMITED",)),
    "PROTOBUF_NULLABLE_REPRESENTATION": ("nulls", ("PROTOBUF", "PROTOBUF_NOSR")),
}
"""Properties after KEY_ or VALUE_ in a WITH clause: the format option that each sets, and the formats that have it."""

_TEXT_KEYS = ("JSON", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR", "CLOUDEVENTS")
"""Formats whose maps have keys of VARCHAR alone."""

_DATA = "data"
_ATTRIBUTE = re.compile(r"[a-z0-9]+")
_CORE = ("id", "source", "type", "subject", "specversion", "datacontenttype", "dataschema", "sequence")
_ATTRIBUTE_TYPES = {**dict.fromkeys(_CORE, (VARCHAR,)), "time": (TIMESTAMP, VARCHAR)}
"""The types of the columns of attributes that CloudEvents defines; those of others are free."""

_KAFKA_TYPES = (INT, BIGINT, DOUBLE, VARCHAR, BYTES)


@dataclass(frozen=True, slots=True)
class Sides:
    """The formats of a source."""

    key: str
    value: str


def declared_formats(
    options: Options, properties: Properties, keys: Sequence[SourceColumn], values: Sequence[SourceColumn]
) -> Sides:
    """Return the formats of a source that is declared with columns."""
    key, value = format_names(options, properties)
    return _checked(options, properties, key, value, {}, {}, keys, values, options.text("KAFKA_TOPIC"))


def formats_without_columns(options: Options, properties: Properties) -> Sides:
    """Return the formats of a source whose columns are not known yet."""
    (key, value), topic = format_names(options, properties), options.text("KAFKA_TOPIC")
    given = {"KEY": key, "VALUE": value}
    found = [_with_options(options, side, name, {}, properties, topic) for side, name in given.items()]
    return Sides(*found)


def format_names(options: Options, properties: Properties) -> tuple[str, str]:
    """Return the SQL names of the formats of keys and values of a source that is declared."""
    value = _named(options, "VALUE", properties.text(VALUE_FORMAT), properties)
    return _named(options, "KEY", properties.text(KEY_FORMAT), properties), value


def result_formats(
    options: Options,
    properties: Properties,
    first: Source,
    keys: Sequence[SourceColumn],
    values: Sequence[SourceColumn],
    *,
    drops_key: bool,
    topic: str,
) -> Sides:
    """Return the formats of a query's result: those of its first source, unless WITH names others.

    Args:
        drops_key: The query says PARTITION BY NULL.
    """
    if any(format_.partition(";")[0] in REGISTERED.values() for format_ in (first.key_format, first.value_format)):
        properties = properties.with_registry()
    first_key, key_inherited = _parts(first.key_format)
    first_value, value_inherited = _parts(first.value_format)
    if first_value == "DEBEZIUM":
        # A result is not a change of the database.
        first_value, value_inherited = properties.text(VALUE_FORMAT) or "JSON", {}
    if first_key == "DEBEZIUM":
        first_key, key_inherited = properties.text(KEY_FORMAT), {}
    if options.has("VALUE_FORMAT") or options.has("FORMAT"):
        # How an app writes field names is part of its own format, not of one that a statement names.
        value_inherited.pop("names", None)
    key = _named(options, "KEY", "NONE" if drops_key else first_key, properties)
    if drops_key and key != "NONE":
        hint = "leave KEY_FORMAT out: PARTITION BY NULL removes the key"
        raise Refused("KEY_FORMAT is for records with a key", hint=hint, location=format_at(options, "KEY"))
    if keys and key == "NONE" and not (options.has("KEY_FORMAT") or options.has("FORMAT")):
        key = properties.text(KEY_FORMAT)
    value = _named(options, "VALUE", first_value, properties)
    if value == "CLOUDEVENTS" and all(column.name.lower() != "type" for column in values):
        hint = "select it: SELECT 'order.paid' AS type, ...; or write VALUE_FORMAT = 'JSON'"
        raise Refused("an event needs a TYPE", hint=hint, location=format_at(options, "VALUE"))
    return _checked(
        options,
        properties,
        key,
        value,
        key_inherited if key == first_key else {},
        value_inherited if value == first_value else {},
        keys,
        values,
        topic,
    )


def _parts(format_: str) -> tuple[str, dict[str, str]]:
    """Return the name of a format in SQL, and the options that a result inherits."""
    name, _, options = format_.partition(";")
    known = {*(option for option, _ in _OWN_OPTIONS.values()), "names"}
    pairs = [pair.partition("=") for pair in options.split(";") if pair]
    if options.startswith("delimiter=;"):
        pairs = [("delimiter", "=", ";"), *(pair for pair in pairs if pair[0] not in ("delimiter", ""))]
    if name in REGISTERED.values():
        known.discard("names")
    return SQL_NAMES.get(name, "JSON"), {option: value for option, _, value in pairs if option in known}


def _named(options: Options, side: str, default: str, properties: Properties) -> str:
    """Return the SQL name of the format of `KEY` or `VALUE`; `default` if the clause names none."""
    if options.text("FORMAT") and options.text(f"{side}_FORMAT"):
        hint = "write FORMAT for both, or KEY_FORMAT and VALUE_FORMAT"
        location = options.given[f"{side}_FORMAT"].at
        raise Refused(f"FORMAT and {side}_FORMAT exclude each other", hint=hint, location=location)
    given = next((key for key in (f"{side}_FORMAT", "FORMAT") if options.has(key)), "")
    chosen = (options.text(given) if given else default).upper()
    location = format_at(options, side)
    if chosen == "JSON_SR" and not properties.has_registry:
        hint = "write JSON, or configure a registry: [schema_registry] url = ... in potok.toml"
        raise Refused(f"{chosen} needs a schema registry, and none is configured", hint=hint, location=location)
    if chosen not in FORMATS and chosen not in REGISTERED:
        known = (*FORMATS, "JSON_SR")
        hint = closest(chosen, known) or f"the formats are {', '.join(known)}"
        raise Refused(f"there is no format {chosen}", hint=hint, location=location)
    return chosen


def format_at(options: Options, side: str) -> SourceLocation:
    """Return the position where the format of `KEY` or `VALUE` is named."""
    return options.at(f"{side}_FORMAT", "FORMAT")


def _checked(
    options: Options,
    properties: Properties,
    key: str,
    value: str,
    key_inherited: dict[str, str],
    value_inherited: dict[str, str],
    keys: Sequence[SourceColumn],
    values: Sequence[SourceColumn],
    topic: str,
) -> Sides:
    wraps = _wraps(options, properties, value, values)
    key_format = _with_options(options, "KEY", key, key_inherited, properties, topic)
    value_format = _with_options(options, "VALUE", value, value_inherited, properties, topic)
    _check_no_map(keys, format_at(options, "KEY"))
    if keys:
        check_columns(key, keys, format_at(options, "KEY"), "KEY")
    check_columns(value, values, format_at(options, "VALUE"), "VALUE")
    return Sides(key_format, value_format if wraps else f"{value_format};wrap=false")


def _with_options(
    options: Options, side: str, name: str, inherited: dict[str, str], properties: Properties, topic: str
) -> str:
    given = dict(inherited)
    check_registered(options, side, name, has_registry=properties.has_registry)
    for suffix, (option, formats) in _OWN_OPTIONS.items():
        written = f"{side}_{suffix}"
        if not options.has(written):
            continue
        if name not in formats:
            hint = f"leave it out, or write {side}_FORMAT = '{formats[-1]}'"
            message = f"{written} is for {' and '.join(formats)}, not {name}"
            raise Refused(message, hint=hint, location=options.given[written].at)
        given[option] = _nulls(options, written) if option == "nulls" else options.text(written)
    if name in _OWN_OPTIONS["PROTOBUF_NULLABLE_REPRESENTATION"][1]:
        given.setdefault("nulls", "default")
    format_ = FORMATS.get(name, "")
    if properties.has_registry and name in REGISTERED:
        format_, given = REGISTERED[name], {**given, **registered_options(options, side, name, topic)}
    for option, value in given.items():
        format_ = f"{format_};{option}={value}"
    if "delimiter" in given:
        _check_delimiter(options, side, given["delimiter"], format_)
    return format_


def _nulls(options: Options, written: str) -> str:
    """Return how Protobuf represents NULL."""
    found = options.text(written).lower()
    if found not in ("optional", "wrapper"):
        hint = f"write {written} = 'OPTIONAL' or 'WRAPPER'; without it, a missing value is read as 0, false or ''"
        raise Refused(f"{written} cannot be '{options.text(written)}'", hint=hint, location=options.at(written))
    return found


def _check_delimiter(options: Options, side: str, delimiter: str, format_: str) -> None:
    try:
        if not delimiter:
            raise SchemaError("a delimiter has one character", hint="use one character, or TAB or SPACE")
        format_named(format_)
    except SchemaError as error:
        location = options.at(f"{side}_DELIMITER")
        raise Refused(f"{side}_DELIMITER cannot be '{delimiter}'", hint=error.hint, location=location) from error


def _wraps(options: Options, properties: Properties, name: str, values: Sequence[SourceColumn]) -> bool:
    """Whether a single column is written as an object."""
    able = _WRAPPING.get(name, (True, False))
    asked = options.flag("WRAP_SINGLE_VALUE")
    if asked is None:
        return properties.flag(WRAP_SINGLE_VALUES) or len(values) != 1 or able != (True, False)
    location = options.given["WRAP_SINGLE_VALUE"].at
    if asked not in able:
        hint = "leave it out" if name != "DELIMITED" else "leave it out: DELIMITED has no column names"
        raise Refused(f"{name} does not take WRAP_SINGLE_VALUE = {str(asked).lower()}", hint=hint, location=location)
    if len(values) != 1:
        hint = "leave it out: values of several columns are always wrapped"
        raise Refused("WRAP_SINGLE_VALUE is for values of one column", hint=hint, location=location)
    return asked or able != (True, False)


def _check_no_map(keys: Sequence[SourceColumn], location: SourceLocation) -> None:
    """Equal maps may be written in different orders, so that equal keys would not have equal bytes."""
    for column in keys:
        if _maps(column.type):
            hint = "use an array or a struct as the key, or entries of the map: m['id']"
            message = f"a key cannot hold a MAP: {quoted(column.name)} is {type_name(column.type)}"
            raise Refused(message, hint=hint, location=location)


def _check_event_columns(columns: Sequence[SourceColumn], location: SourceLocation) -> None:
    """Raise if a column is neither an attribute of CloudEvents nor the data."""
    for column in columns:
        name = column.name.lower()
        if name == _DATA:
            continue
        types = _ATTRIBUTE_TYPES.get(name, (VARCHAR, INT, BOOLEAN))
        if not _ATTRIBUTE.fullmatch(name):
            hint = f"make it a field of the data: DATA STRUCT<{quoted(column.name)} {type_name(column.type)}>"
            raise Refused(f"{quoted(column.name)} cannot be an attribute of an event", hint=hint, location=location)
        if column.type not in types:
            names = " or ".join(type_name(type_) for type_ in types)
            hint = f"declare it as {names}, or make it a field of the data: DATA STRUCT<{quoted(column.name)} ...>"
            message = f"the attribute {quoted(column.name)} of an event cannot be {type_name(column.type)}"
            raise Refused(message, hint=hint, location=location)


def check_columns(name: str, columns: Sequence[SourceColumn], location: SourceLocation, side: str) -> None:
    """Raise if a format, by its SQL name, cannot hold these columns."""
    rendered = ", ".join(f"{quoted(column.name)} {type_name(column.type)}" for column in columns)
    if name == "KAFKA" and not (len(columns) == 1 and columns[0].type in _KAFKA_TYPES):
        hint = f"write {side}_FORMAT = 'JSON'; KAFKA is for one column of INT, BIGINT, DOUBLE, VARCHAR or BYTES"
        raise Refused(f"KAFKA cannot hold {rendered}", hint=hint, location=location)
    if name == "CLOUDEVENTS" and side == "KEY":
        hint = "leave KEY_FORMAT out: the key of an event is plain"
        raise Refused("CLOUDEVENTS is a format of values", hint=hint, location=location)
    if name == "CLOUDEVENTS":
        _check_event_columns(columns, location)
    if name == "NONE" and columns:
        hint = f"write {side}_FORMAT = 'JSON'"
        raise Refused(f"NONE cannot hold {rendered}", hint=hint, location=location)
    for column in columns:
        if name == "DELIMITED" and pa.types.is_nested(column.type):
            hint = f"write {side}_FORMAT = 'JSON'"
            message = f"DELIMITED cannot hold {quoted(column.name)}, which is {type_name(column.type)}"
            raise Refused(message, hint=hint, location=location)
        if name in _TEXT_KEYS and any(part.key_type != VARCHAR for part in _maps(column.type)):
            hint = f"the keys of a map in {name} are strings: write MAP<VARCHAR, ...>, or CAST the keys to VARCHAR"
            message = f"{name} cannot hold {quoted(column.name)}, which is {type_name(column.type)}"
            raise Refused(message, hint=hint, location=location)


def _maps(type_: pa.DataType) -> list[pa.DataType]:
    """Return all map types in a type, including itself."""
    if pa.types.is_map(type_):
        return [type_, *_maps(type_.item_type)]
    if pa.types.is_list(type_):
        return _maps(type_.value_type)
    return [found for field in type_ for found in _maps(field.type)] if pa.types.is_struct(type_) else []
