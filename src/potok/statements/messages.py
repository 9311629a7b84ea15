"""Messages for executed statements, worded as clients of ksqlDB expect."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from potok.sql.syntax import ast
from potok.topology.compare import Change

FEW = 5
"""The number of names to list before "and N more"."""

_TYPES = {
    "bool": "BOOLEAN",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BYTES",
    "date32[day]": "DATE",
    "time32[ms]": "TIME",
    "timestamp[ms]": "TIMESTAMP",
    "decimal128": "DECIMAL",
    "list<item: ": "ARRAY<",
    "map<": "MAP<",
    "struct<": "STRUCT<",
}
_TYPE = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, _TYPES))})(?:(?<=[< ])|(?![\w:]))")
"""Does not match a field named like a type: a colon follows its name."""
_AGGREGATES = re.compile(r"columns \((.*)\)(?: as (.*))?")


def counted(number: int, what: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def damage_message(broken: Mapping[str, str]) -> str:
    """Summarize the statements that could not be loaded, with the first reason, which usually explains the others.

    >>> damage_message({"B": "there is no function ZZ", "C": "B is there, and cannot be loaded: ..."})
    'B and C cannot be loaded: there is no function ZZ; --functions FILE loads functions'
    """
    *names, last = [*list(broken)[:FEW], *([f"{len(broken) - FEW} more"] if len(broken) > FEW else [])]
    why = next(iter(broken.values()))
    hint = "--functions FILE loads functions" if "no function" in why else "see SHOW QUERIES EXTENDED"
    listed = f"{', '.join(names)} and {last}" if names else last
    return f"{listed} cannot be loaded: {why}; {hint}"


def cycle_message(query_id: str, topics: Sequence[str]) -> str:
    """
    >>> cycle_message("INSERTQUERY_3", ["A", "B"])
    'query INSERTQUERY_3 creates a cycle, A -> B -> A: records loop forever unless a WHERE clause stops them'
    """
    cycle = " -> ".join([*topics, topics[0]])
    return f"query {query_id} creates a cycle, {cycle}: records loop forever unless a WHERE clause stops them"


def mismatch_message(change: Change, source: str) -> str:
    """Explain in terms of SQL why the state of a query does not match its statement.

    >>> change = Change("T", "", False, "value", "struct<C: int64>", "struct<C: int64, S: list<item: int32>>")
    >>> mismatch_message(change, "T")
    'its columns were C BIGINT and would be C BIGINT, S ARRAY<INTEGER>'
    """
    step = "" if change.step == source else f"{change.step}: "
    match change.part:
        case "key":
            return f"{step}its key was {sql_type(change.was)} and would be {sql_type(change.now)}"
        case "value" if "none" not in (change.was, change.now):
            return f"{step}its columns were {_columns(change.was)} and would be {_columns(change.now)}"
        case "window":
            return f"{step}its windows were {change.was} and would be {change.now}"
        case "cells" if _AGGREGATES.fullmatch(change.was) and _AGGREGATES.fullmatch(change.now):
            return f"{step}its aggregates were {_aggregates(change.was)} and would be {_aggregates(change.now)}"
        case "cells" | "kind" | "value":
            return f"{step}its rows would be stored differently"
        case "function":
            return "the effect of records processed by the previous query could not be undone"
    return f"{step}{change.what}"


def sql_type(arrow: str) -> str:
    """Convert an Arrow type to SQL.

    >>> sql_type("map<string, struct<a: timestamp[ms], double: decimal128(4, 2)>>")
    'MAP<VARCHAR, STRUCT<a TIMESTAMP, double DECIMAL(4, 2)>>'
    """
    return _TYPE.sub(lambda found: _TYPES[found[0]], arrow).replace(": ", " ")


def _columns(arrow: str) -> str:
    return sql_type(arrow.removeprefix("struct<").removesuffix(">") if arrow.startswith("struct<") else arrow)


def _aggregates(cells: str) -> str:
    """`COUNT BIGINT, SUM DOUBLE as N, TOTAL`."""
    found = _AGGREGATES.fullmatch(cells)
    assert found is not None
    parts = (part.partition(" ") for part in re.split(r", (?=[a-z_]+ )", found[1]))
    named = f" as {found[2]}" if found[2] else ""
    return ", ".join(f"{operation.upper()} {sql_type(type_)}" for operation, _, type_ in parts) + named


def prefix_of(statement: ast.Statement) -> str:
    """Return the prefix of the id of the query that a statement starts, or "" if it starts none."""
    match statement:
        case ast.CreateAs():
            return f"{'CTAS' if statement.is_table else 'CSAS'}_{statement.name}"
        case ast.InsertSelect():
            return "INSERTQUERY"
        case ast.CreateSource() if statement.is_table and statement.read_only:
            return f"CST_{statement.name}"
    return ""


def kind_of(statement: ast.Statement) -> str:
    """Return the kind of query that a statement starts, or "" if it starts none."""
    match statement:
        case ast.CreateAs():
            return "CTAS" if statement.is_table else "CSAS"
        case ast.InsertSelect():
            return "INSERT"
        case ast.CreateSource() if statement.is_table and statement.read_only:
            return "SOURCE TABLE"
    return ""


def done_message(statement: ast.Statement, query_id: str) -> str:
    match statement:
        case ast.CreateSource():
            return f"{'Table' if statement.is_table else 'Stream'} created"
        case ast.CreateAs() | ast.InsertSelect():
            return f"Created query with ID {query_id}"
        case ast.CreateType():
            return f"Registered custom type with name '{statement.name}'"
        case ast.AlterSource():
            return f"{'Table' if statement.is_table else 'Stream'} altered"
        case ast.CreateConnector():
            return f"Created connector {statement.name}"
        case ast.Drop(kind="CONNECTOR"):
            return f"Dropped connector {statement.name}"
        case ast.Drop(kind="TYPE"):
            return f"Dropped type '{statement.name}'"
        case ast.Drop():
            deleted = " and its topic deleted" if statement.delete_topic else ""
            return f"Source {statement.name} dropped{deleted}"
        case ast.Steer():
            return f"Query {statement.action.lower()}{'d' if statement.action.endswith('E') else 'ed'}"
    return "Done"


def command_id_of(statement: ast.Statement) -> str:
    match statement:
        case ast.CreateSource() | ast.CreateAs():
            return f"{'table' if statement.is_table else 'stream'}/{statement.name}/create"
        case ast.InsertSelect():
            return f"stream/{statement.name}/create"
        case ast.CreateType():
            return f"type/{statement.name}/create"
        case ast.CreateConnector():
            return f"connector/{statement.name}/create"
        case ast.AlterSource():
            return f"{'table' if statement.is_table else 'stream'}/{statement.name}/alter"
        case ast.Drop():
            return f"{statement.kind.lower()}/{statement.name}/drop"
        case ast.Steer():
            return f"{'terminate' if statement.action == 'TERMINATE' else 'alter'}/{statement.query_id}/execute"
    return ""
