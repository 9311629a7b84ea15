"""Tables of a database in SQL: `CREATE TABLE users (...) WITH (CONNECTOR = 'postgres', ...)`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from potok.errors import TopologyError
from potok.sql.catalog import CapturedTable, Source
from potok.sql.errors import Refused
from potok.sql.formats import Sides
from potok.sql.syntax import ast
from potok.sql.with_clause import Options
from potok.topology.capture import Capture

CONNECTORS = {"postgres": "postgresql", "mysql": "mysql", "mariadb": "mysql"}
"""The connectors, and the scheme of their URLs."""

_ENVIRONMENT = "env:"
_EXCLUDED = ("KAFKA_TOPIC", "FORMAT", "KEY_FORMAT", "VALUE_FORMAT", "CLEANUP_POLICY", "RETENTION_MS", "WINDOW_TYPE")


def captured_table(options: Options, statement: ast.CreateSource) -> CapturedTable | None:
    """Return which table of a database a statement names, or None if it is over a topic."""
    if not options.has("CONNECTOR"):
        for name in ("URL", "SOURCE_TABLE", "CAPTURE"):
            if options.has(name):
                hint = f"write CONNECTOR = 'postgres', or leave {name} out"
                raise Refused(f"{name} needs CONNECTOR", hint=hint, location=options.at(name))
        return None
    connector = options.text("CONNECTOR").lower()
    if connector not in CONNECTORS:
        hint = f"the connectors are {', '.join(CONNECTORS)}"
        raise Refused(f"there is no connector '{connector}'", hint=hint, location=options.at("CONNECTOR"))
    for name in _EXCLUDED:
        if options.has(name):
            hint = "leave it out: a captured table has its own topic, in the envelope of Debezium"
            raise Refused(f"{name} and CONNECTOR exclude each other", hint=hint, location=options.at(name))
    url, name = options.text("URL"), options.text("CAPTURE")
    if not url.startswith(_ENVIRONMENT):
        hint = "write URL = 'env:SHOP_URL', and set the variable where the server runs: statements are stored"
        raise Refused("the URL of a database is read from the environment", hint=hint, location=options.at("URL"))
    if not name:
        hint = "name it: CAPTURE = 'shop'; its topics begin with that, and tables of one database share it"
        raise Refused("CAPTURE is missing", hint=hint, location=options.at("CONNECTOR"))
    table = options.text("SOURCE_TABLE") or statement.name.lower()
    if connector != "postgres" and "." not in table:
        hint = f"write SOURCE_TABLE = 'database.{table}'"
        raise Refused("SOURCE_TABLE needs its database", hint=hint, location=options.at("SOURCE_TABLE", "CONNECTOR"))
    try:
        # The database is known where the capture runs; everything else is checked here.
        capture = Capture(url=f"{CONNECTORS[connector]}://host/database", name=name, tables=(table,))
    except TopologyError as error:
        raise Refused(error.message, hint=error.hint, location=options.at("CAPTURE", "SOURCE_TABLE")) from error
    return CapturedTable(url.removeprefix(_ENVIRONMENT), name, capture.tables[0], capture.topic(table))


def debezium_formats(formats: Sides, *, is_table: bool, captured: bool) -> Sides:
    """Return the formats of change events: rows for a table, whole envelopes for a stream.

    Names of columns are upper case in SQL, and lower case in most databases.
    """
    key = "debezium_key;names=lower" if captured or formats.key.startswith("debezium") else formats.key
    return Sides(key, f"{'debezium' if is_table else 'debezium_envelope'};names=lower")


def captures_of(sources: Iterable[Source], urls: dict[str, str]) -> list[Capture]:
    """Return the captures that the tables of a catalog require; `urls` has the databases by their variables."""
    tables: dict[tuple[str, str], list[str]] = {}
    for source in sources:
        if source.captured is not None:
            tables.setdefault((source.captured.name, source.captured.variable), []).append(source.captured.table)
    made = []
    for (name, variable), captured in sorted(tables.items()):
        if variable not in urls:
            hint = f"export {variable}=postgresql://user@host/shop"
            raise TopologyError(f'capture "{name}" needs the environment variable {variable}', hint=hint)
        made.append(Capture(url=urls[variable], name=name, tables=_sorted(captured), times="micros"))
    return made


def _sorted(tables: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(set(tables)))
