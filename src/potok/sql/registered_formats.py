"""Formats of a schema registry in a WITH clause."""

from __future__ import annotations

import re

from potok.records.schema_registry.connection import current_connection
from potok.records.schema_registry.subjects import Side, strategy_of, subject_of
from potok.sql.errors import Refused
from potok.sql.with_clause import Options

REGISTERED = {"AVRO": "avro_sr", "PROTOBUF": "protobuf_sr", "JSON_SR": "json_sr"}
"""Formats by their names in SQL; JSON_SR is nothing without a registry."""

_DEFAULT_NAMES = {"AVRO": "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema", "PROTOBUF": "ConnectDefault1"}
"""The names of records in schemas that are registered, as in ksqlDB."""

_FULL_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_MOST = (1 << 31) - 1


def check_registered(options: Options, side: str, name: str, *, has_registry: bool) -> None:
    """Raise for a property of KEY or VALUE that is for a schema registry, if the format has none."""
    for written, formats in _properties(side).items():
        if not options.has(written):
            continue
        location = options.given[written].at
        if name not in formats:
            hint = f"leave it out, or write {side}_FORMAT = '{formats[0]}'"
            raise Refused(f"{written} is for {' and '.join(formats)}, not {name}", hint=hint, location=location)
        if not has_registry:
            hint = "configure one: [schema_registry] url = ... in potok.toml"
            raise Refused(f"{written} needs a schema registry, and none is configured", hint=hint, location=location)


def registered_options(options: Options, side: str, name: str, topic: str) -> dict[str, str]:
    """Return the options of a format of a registry."""
    found = {"names": "fold"}
    schema_id = schema_id_of(options, side)
    if schema_id is not None:
        found["id"] = str(schema_id)
    full_name = full_name_of(options, side) or _DEFAULT_NAMES.get(name, "")
    if full_name:
        found["full_name"] = full_name
    connection, where = current_connection(), _side(side)
    strategy = "topic" if connection is None else strategy_of(connection, where)
    return {**found, "subject": subject_of(topic, where, full_name, strategy)}


def schema_id_of(options: Options, side: str) -> int | None:
    return options.count(f"{side}_SCHEMA_ID", most=_MOST)


def full_name_of(options: Options, side: str) -> str:
    """Return the name of the record that WITH gives; "" without one."""
    for written in _properties(side):
        if written.endswith("_FULL_NAME") and options.has(written):
            found = options.text(written)
            if not _FULL_NAME.fullmatch(found):
                hint = f"write {written} = 'shop.Order'"
                raise Refused(f"{written} cannot be '{found}'", hint=hint, location=options.at(written))
            return found
    return ""


def _properties(side: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {
        f"{side}_SCHEMA_ID": ("AVRO", "PROTOBUF", "JSON_SR"),
        f"{side}_SCHEMA_FULL_NAME": ("AVRO", "PROTOBUF"),
    }
    return found if side == "KEY" else {**found, "VALUE_AVRO_SCHEMA_FULL_NAME": ("AVRO",)}


def _side(side: str) -> Side:
    return "key" if side == "KEY" else "value"
