"""Columns from a schema registry, for a CREATE statement that declares none, and the schemas of new topics.

The columns become part of the statement before it is recorded, so they stay what they were when it was executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from potok.errors import PotokError
from potok.records.formats.registered.declare import announce, is_registered, registered_format
from potok.records.schema_registry.client import Registered
from potok.records.schema_registry.connection import connection_of, current_connection, shown_url, using_connection
from potok.records.schema_registry.errors import NoSuchSubject, UnknownSchema
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.settings import Settings
from potok.sql.catalog import Catalog
from potok.sql.errors import Refused
from potok.sql.formats import format_at, format_names, formats_without_columns
from potok.sql.properties import REGISTRY, Properties
from potok.sql.registered_formats import REGISTERED, schema_id_of
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script
from potok.sql.syntax.statement_text import show_statement
from potok.sql.types import quoted, type_name
from potok.sql.with_clause import Options

_ROLES = {True: " PRIMARY KEY", False: " KEY"}


def with_registry(
    parsed: ast.Parsed, properties: Mapping[str, str], settings: Settings
) -> tuple[ast.Parsed, Mapping[str, str]]:
    """Return a statement with the columns that the registry has for it, and the properties that record the registry.
    Without a registry, both are unchanged."""
    statement = parsed.statement
    if not isinstance(statement, ast.CreateSource | ast.CreateAs):
        return parsed, properties
    connection = connection_of(settings.schema_registry) or current_connection()
    if connection is None:
        return parsed, properties
    known = {**properties, REGISTRY: shown_url(connection)}
    if isinstance(statement, ast.CreateSource):
        with using_connection(connection):
            parsed = _with_columns(parsed, statement, Properties.of(known))
    return parsed, known


def _with_columns(parsed: ast.Parsed, statement: ast.CreateSource, properties: Properties) -> ast.Parsed:
    options = Options.of(statement.properties, statement.at)
    topic = options.text("KAFKA_TOPIC")
    if not topic:
        return parsed
    key, value = format_names(options, properties)
    with_keys = any("KEY" in column.role for column in statement.columns)
    with_values = any(not column.role for column in statement.columns)
    for side, declared in (("KEY", with_keys), ("VALUE", with_values)):
        if declared and options.has(f"{side}_SCHEMA_ID"):
            hint = f"leave out the columns of the {side.lower()}, or {side}_SCHEMA_ID"
            location = options.given[f"{side}_SCHEMA_ID"].at
            raise Refused(f"{side}_SCHEMA_ID and columns exclude each other", hint=hint, location=location)
    found: list[str] = []
    if key in REGISTERED and not with_keys:
        schema = _schema(options, properties, "KEY")
        found.append(f"ROWKEY {type_name(_folded(schema, options, 'KEY').arrow)}{_ROLES[statement.is_table]}")
    if value in REGISTERED and not with_values:
        schema = _folded(_schema(options, properties, "VALUE"), options, "VALUE")
        found += _value_columns(schema, options)
    if not found:
        return parsed
    (columns,) = parse_script(f"CREATE STREAM s ({', '.join(found)}) WITH (KAFKA_TOPIC = 's');")
    assert isinstance(columns.statement, ast.CreateSource)
    text = show_statement(replace(statement, columns=(*statement.columns, *columns.statement.columns)))
    (made,) = parse_script(f"{text};")
    return made


def _schema(options: Options, properties: Properties, side: str) -> Schema:
    """Return the type that the registry has for keys or values: by their id, or the latest of the subject."""
    sides = formats_without_columns(options, properties)
    format_ = registered_format(sides.key if side == "KEY" else sides.value)
    location = options.at(f"{side}_SCHEMA_ID", f"{side}_FORMAT", "FORMAT")
    try:
        found = format_.pinned() or format_.client.latest(format_.subject)
        inferred = format_.infer(found, sql=True)
    except NoSuchSubject as error:
        hint = f"declare the columns, or register a schema of subject {format_.subject}"
        raise Refused(error.message, hint=hint, location=location) from error
    except UnknownSchema as error:
        raise Refused(str(error), hint="declare the columns", location=location) from error
    except PotokError as error:
        if error.passing:
            raise
        raise Refused(error.message, hint=error.hint, location=location) from error
    if inferred is None:
        raise Refused(f"schema {found.id} of the registry has no columns", hint="declare them", location=location)
    return inferred


def _folded(schema: Schema, options: Options, side: str) -> Schema:
    """Return a type with names in upper case, unless the statement names the schema by its id."""
    return schema if schema_id_of(options, side) is not None else _upper(schema)


def _upper(schema: Schema) -> Schema:
    if schema.kind == "struct":
        fields = [replace(field, name=field.name.upper(), schema=_upper(field.schema)) for field in schema.fields]
        return Schema.struct(fields)
    if schema.kind == "list" and schema.item is not None:
        return Schema.list_of(_upper(schema.item))
    if schema.kind == "map" and schema.item is not None and schema.key is not None:
        return Schema.map_of(schema.key, _upper(schema.item))
    return schema


def _value_columns(schema: Schema, options: Options) -> list[str]:
    if options.flag("WRAP_SINGLE_VALUE") is False:
        return [f"ROWVAL {type_name(schema.arrow)}"]
    if schema.kind != "struct":
        hint = "add WRAP_SINGLE_VALUE = false, and the value is one column: ROWVAL"
        message = f"the schema of the value is {type_name(schema.arrow)}, which has no columns"
        raise Refused(message, hint=hint, location=format_at(options, "VALUE"))
    return [f"{quoted(field.name)} {type_name(field.type)}" for field in schema.fields]


def register_schemas(parsed: ast.Parsed, catalog: Catalog, settings: Settings) -> None:
    """Register the schemas of a new stream or table. Raises if the registry refuses one.

    Those of a CREATE statement without a query are registered only if their subject has none, or if it names them by
    their id: other programs write the topic.
    """
    statement = parsed.statement
    if not isinstance(statement, ast.CreateSource | ast.CreateAs):
        return
    source, options = catalog.source(statement.name), Options.of(statement.properties, statement.at)
    with using_connection(connection_of(settings.schema_registry) or current_connection()):
        for side, format_name, type_ in (
            ("KEY", source.key_format, source.key_type),
            ("VALUE", source.value_format, source.value_type),
        ):
            schema = declared_schema(type_)
            if not is_registered(format_name) or schema is None or (schema.kind == "struct" and not schema.fields):
                continue
            try:
                _register(format_name, schema, with_query=isinstance(statement, ast.CreateAs))
            except PotokError as error:
                if error.passing:
                    raise
                location = options.at(f"{side}_SCHEMA_ID", f"{side}_FORMAT", "FORMAT")
                refused = Refused(error.message, hint=error.hint, location=location)
                raise refused.in_text(parsed.in_script) from error


def _register(format_name: str, schema: Schema, *, with_query: bool) -> None:
    format_ = registered_format(format_name)
    pinned = format_.pinned()
    if pinned is not None and with_query:
        _check_fits(format_.infer(pinned, sql=True), schema, pinned, format_name)
    if pinned is not None and not with_query:
        # The stream may only be read: whether its columns can be written is checked by who writes them.
        format_.writer_schema()
    elif with_query or not format_.client.has_subject(format_.subject):
        announce(format_name, schema)


def _check_fits(inferred: Schema | None, schema: Schema, pinned: Registered, format_name: str) -> None:
    """Raise unless a schema has the columns of a query, with their types."""
    if schema.kind != "struct" or inferred is None or inferred.kind != "struct" or "wrap=false" in format_name:
        return
    known = {field.name: field.type for field in inferred.fields}
    for field in schema.fields:
        if known.get(field.name) != field.type:
            has = type_name(known[field.name]) if field.name in known else "no such field"
            message = f"{quoted(field.name)} is {type_name(field.type)} in the query, and {has} in schema {pinned.id}"
            raise Refused(message, hint="select columns with the names and types of the schema")
