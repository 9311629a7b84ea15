"""Results of statements as entities of ksqlDB's REST API."""

from __future__ import annotations

from typing import Any

from potok.server.ksql.descriptions import (
    connector_description,
    connector_info,
    connector_line,
    functions_of,
    query_description,
    running_query,
    source_description,
    source_line,
    topic_line,
)
from potok.sql.syntax import ast
from potok.statements.database import Database
from potok.statements.inspect.sources import show_types
from potok.statements.results import Done, Result, Rows
from potok.statements.session import CHANGES, SqlSession

Entity = dict[str, Any]

_SILENT = ast.InsertValues | ast.SetProperty | ast.Define
"""Statements for which ksqlDB returns no entity."""


def entity_of(parsed: ast.Parsed, result: Result, database: Database, session: SqlSession) -> Entity | None:
    """Return the entity of a statement; None if it has none."""
    statement = parsed.statement
    if isinstance(statement, _SILENT):
        return None
    about: Entity = {"statementText": parsed.text, "warnings": _warnings(result)}
    if isinstance(result, Done):
        return {**_done(statement, result, database), **about}
    assert isinstance(result, Rows)
    match statement:
        case ast.Show():
            return {**_render(statement, result, database, session), **about}
        case ast.Describe():
            return {**_described(statement, result, database), **about}
        case ast.Explain():
            return {"@type": "queryDescription", "queryDescription": query_description(result, database), **about}
    raise TypeError(f"{type(statement).__name__} has no entity")


def _warnings(result: Result) -> list[Entity]:
    return [{"message": text} for text in getattr(result, "warnings", ())]


def _done(statement: ast.Statement, done: Done, database: Database) -> Entity:
    if isinstance(statement, ast.AssertTopic):
        return {"@type": "assert_topic", "topicName": statement.topic, "exists": statement.exists}
    if isinstance(statement, CHANGES) and done.sequence < 0:
        return {"@type": "warning_entity", "message": done.message}
    if isinstance(statement, ast.CreateConnector):
        return {"@type": "connector_info", "info": connector_info(database.connector(statement.name))}
    if isinstance(statement, ast.Drop) and statement.kind == "CONNECTOR":
        return {"@type": "drop_connector", "connectorName": statement.name}
    return {
        "@type": "currentStatus",
        "commandId": done.command_id,
        "commandStatus": {"status": "SUCCESS", "message": done.message, "queryId": done.query_id or None},
        "commandSequenceNumber": done.sequence,
    }


def _render(statement: ast.Show, result: Rows, database: Database, session: SqlSession) -> Entity:
    catalog = database.catalog
    match statement.what:
        case "STREAMS" | "TABLES" as what:
            return _sources(database, tables=what == "TABLES", extended=statement.extended)
        case "QUERIES" if statement.extended:
            described = [query_description(None, database, info) for info in database.queries()]
            return {"@type": "query_descriptions", "queryDescriptions": described}
        case "QUERIES":
            return {"@type": "queries", "queries": [running_query(info) for info in database.queries()]}
        case "TOPICS" | "ALL TOPICS":
            kind = "kafka_topics_extended" if statement.extended else "kafka_topics"
            return {"@type": kind, "topics": [topic_line(row, database, statement.extended) for row in result.rows]}
        case "CONNECTORS" | "SOURCE CONNECTORS" | "SINK CONNECTORS":
            lines = [connector_line(database.connector(row[0]), row[3]) for row in result.rows]
            return {"@type": "connector_list", "connectors": lines}
        case "FUNCTIONS":
            named = [{"name": row[0], "type": row[1], "category": row[2]} for row in result.rows]
            return {"@type": "function_names", "functions": named}
        case "TYPES":
            return {"@type": "type_list", "types": dict(show_types(database).rows) if catalog.types else {}}
        case "VARIABLES":
            return {"@type": "variables", "variables": [{"name": row[0], "value": row[1]} for row in result.rows]}
    listed = [{"name": row[0], "scope": row[1], "value": row[-1]} for row in result.rows]
    overwritten = sorted(session.properties)
    return {
        "@type": "properties",
        "properties": listed,
        "overwrittenProperties": overwritten,
        "defaultProperties": sorted(row["name"] for row in listed if row["name"] not in session.properties),
    }


def _sources(database: Database, *, tables: bool, extended: bool) -> Entity:
    known = database.catalog.sources
    sources = [known[name] for name in sorted(known) if known[name].is_table == tables]
    if extended:
        described = [source_description(source, database, extended=True) for source in sources]
        return {"@type": "source_descriptions", "sourceDescriptions": described}
    kind = "tables" if tables else "streams"
    return {"@type": kind, kind: [source_line(source) for source in sources]}


def _described(statement: ast.Describe, result: Rows, database: Database) -> Entity:
    if statement.kind == "FUNCTION":
        return {"@type": "describe_function", **functions_of(result)}
    if statement.kind == "CONNECTOR":
        return {"@type": "connector_description", **connector_description(database.connector(statement.name), database)}
    if statement.kind in ("STREAMS", "TABLES"):
        return _sources(database, tables=statement.kind == "TABLES", extended=True)
    source = database.catalog.source(statement.name, statement.at)
    described = source_description(source, database, extended=statement.extended)
    return {"@type": "sourceDescription", "sourceDescription": described}
