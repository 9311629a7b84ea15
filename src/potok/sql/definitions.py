"""Turn CREATE statements with columns into sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from potok.compat.java.dates.patterns import BadPattern, pattern_of
from potok.log.maintenance import DELETE
from potok.sql.analysis.scope import PSEUDO, WINDOW_BOUNDS
from potok.sql.captured import captured_table, debezium_formats
from potok.sql.catalog import Catalog, Source, SourceColumn
from potok.sql.errors import Refused, SqlTypeError, closest
from potok.sql.formats import SQL_NAMES, check_columns, declared_formats
from potok.sql.planner.sources import HEADER_ROWS
from potok.sql.properties import NO_PROPERTIES, Properties
from potok.sql.syntax import ast
from potok.sql.syntax.type_names import resolve
from potok.sql.types import BIGINT, BYTES, TIMESTAMP, VARCHAR, quoted, type_name
from potok.sql.with_clause import Options


def columns_of(statement: ast.CreateSource, catalog: Catalog) -> tuple[SourceColumn, ...]:
    """Check the columns of a statement: unique names, and the right kind of key."""
    found: list[SourceColumn] = []
    if not statement.columns:
        hint = (
            f"declare them: CREATE {'TABLE' if statement.is_table else 'STREAM'} {quoted(statement.name)} (id INT ...)"
        )
        raise Refused(f"{quoted(statement.name)} has no columns", hint=hint, location=statement.at)
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
                raise SqlTypeError(f"{quoted(column.name)} is {type_name(type_)}", hint=hint, location=column.at)
            _check_header(column, header, found)
        found.append(SourceColumn(column.name, type_, "KEY" in column.role, header))
    if statement.is_table and not any(column.is_key for column in found):
        hint = "say which: id INT PRIMARY KEY"
        raise Refused(f"table {quoted(statement.name)} needs a primary key", hint=hint, location=statement.at)
    return tuple(found)


def _check_name(column: ast.ColumnDefinition, found: Sequence[SourceColumn]) -> None:
    if column.name in (*PSEUDO, *WINDOW_BOUNDS):
        hint = "every record has it without a declaration; choose another name"
        raise Refused(f"{column.name} is a reserved name", hint=hint, location=column.at)
    if any(other.name == column.name for other in found):
        hint = "give each column a name of its own"
        raise Refused(f"column {quoted(column.name)} is declared twice", hint=hint, location=column.at)


def _check_header(column: ast.ColumnDefinition, header: str, found: Sequence[SourceColumn]) -> None:
    others = [other for other in found if other.header is not None]
    if any("" in (header, other.header) for other in others):
        hint = "declare HEADERS alone, or each header by its name: HEADER('name')"
        raise Refused("HEADERS holds all headers, and must be the only header column", hint=hint, location=column.at)
    if any(other.header == header for other in others):
        hint = "leave one of the columns out"
        raise Refused(f"the header '{header}' is declared twice", hint=hint, location=column.at)


def _check_role(column: ast.ColumnDefinition, statement: ast.CreateSource) -> None:
    if column.role == "KEY" and statement.is_table:
        hint = f"write {quoted(column.name)} ... PRIMARY KEY"
        raise Refused("the key of a table is a PRIMARY KEY", hint=hint, location=column.at)
    if column.role == "PRIMARY KEY" and not statement.is_table:
        hint = f"write {quoted(column.name)} ... KEY; a stream may have many records of one key"
        raise Refused("the key of a stream is a KEY", hint=hint, location=column.at)


def defined(statement: ast.CreateSource, catalog: Catalog, text: str, properties: Properties = NO_PROPERTIES) -> Source:
    """Return the source that a CREATE statement with columns declares."""
    options = Options.of(statement.properties, statement.at)
    captured = captured_table(options, statement)
    if captured is None and not options.text("KAFKA_TOPIC"):
        hint = f"add WITH (KAFKA_TOPIC = '{statement.name.lower()}', VALUE_FORMAT = 'JSON')"
        raise Refused("KAFKA_TOPIC is missing", hint=hint, location=statement.at)
    columns = columns_of(statement, catalog)
    keys = tuple(column for column in columns if column.is_key)
    values = tuple(column for column in columns if not column.is_key and column.header is None)
    formats, window = declared_formats(options, properties, keys, values), options.window()
    if captured is not None or formats.value.startswith("debezium"):
        formats = debezium_formats(formats, is_table=statement.is_table, captured=captured is not None)
    if window is not None and not keys:
        hint = "declare a column with KEY, because windows are part of the key"
        raise Refused(
            f"{quoted(statement.name)} is windowed, but has no key", hint=hint, location=options.at("WINDOW_TYPE")
        )
    options.count("REPLICAS")
    return Source(
        statement.name,
        statement.is_table,
        columns,
        options.topic("") if captured is None else captured.topic,
        formats.key,
        formats.value,
        timestamp=timestamp_of(options, columns),
        timestamp_format=options.text("TIMESTAMP_FORMAT"),
        window=window,
        read_only=statement.read_only,
        partitions=options.partitions(),
        retention_ms=options.retention_ms(compacted=statement.is_table and window is None),
        # Compaction would remove the records from which values that a change did not send are filled.
        cleanup_policy=options.cleanup_policy() if captured is None else DELETE,
        history_ms=options.history(statement),
        statement=text,
        captured=captured,
    )


def altered(source: Source, statement: ast.AlterSource, catalog: Catalog) -> Source:
    """Return a source with the columns that ALTER adds to its value."""
    columns = list(source.columns)
    for column in statement.columns:
        if source.column(column.name) is not None:
            hint = "choose another name"
            raise Refused(f"there is a column {quoted(column.name)} already", hint=hint, location=column.at)
        _check_name(column, columns)
        columns.append(SourceColumn(column.name, resolve(column.type, catalog.types)))
    made = replace(source, columns=tuple(columns))
    check_columns(SQL_NAMES.get(source.value_format.partition(";")[0], ""), made.values, statement.at, "VALUE")
    if len(made.values) > 1 and source.value_format.endswith(";wrap=false"):
        hint = "declare it again, with a value that is wrapped"
        raise Refused(f"the value of {quoted(source.name)} is one column alone", hint=hint, location=statement.at)
    return made


def timestamp_of(options: Options, columns: Sequence[SourceColumn]) -> str:
    """Return the column with the timestamp of records; "" if WITH names none."""
    name = options.text("TIMESTAMP")
    if not name:
        return ""
    location = options.at("TIMESTAMP")
    folded = name.strip("`") if name.startswith("`") else name.upper()
    column = next((column for column in columns if column.name == folded), None)
    if column is None:
        hint = closest(folded, [c.name for c in columns]) or f"the columns are {', '.join(c.name for c in columns)}"
        raise Refused(f"TIMESTAMP names no column: {name}", hint=hint, location=location)
    text = options.text("TIMESTAMP_FORMAT")
    if column.type == VARCHAR and not text:
        hint = "add TIMESTAMP_FORMAT = 'yyyy-MM-dd''T''HH:mm:ss'"
        raise Refused(f"{quoted(column.name)} is text and has no format", hint=hint, location=location)
    if column.type not in (BIGINT, TIMESTAMP, VARCHAR):
        hint = "choose a column of type BIGINT, TIMESTAMP or VARCHAR"
        raise SqlTypeError(f"{quoted(column.name)} is {type_name(column.type)}", hint=hint, location=location)
    if text and column.type != VARCHAR:
        hint = f"leave it out: {quoted(column.name)} is {type_name(column.type)}"
        raise Refused(
            "TIMESTAMP_FORMAT is only for VARCHAR columns", hint=hint, location=options.at("TIMESTAMP_FORMAT")
        )
    if text:
        _check_pattern(text, options)
    return column.name


def _check_pattern(text: str, options: Options) -> None:
    try:
        pattern_of(text)
    except BadPattern as error:
        hint = "write a pattern of Java's: 'yyyy-MM-dd HH:mm:ss'"
        location = options.at("TIMESTAMP_FORMAT")
        raise Refused(f"TIMESTAMP_FORMAT '{text}' is invalid: {error}", hint=hint, location=location) from error
