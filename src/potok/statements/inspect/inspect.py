"""SHOW, DESCRIBE, EXPLAIN and ASSERT. The columns are those of ksqlDB's CLI, and some more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from potok.sql.syntax import ast
from potok.statements.inspect.explain import explain
from potok.statements.inspect.functions import describe_function, show_functions
from potok.statements.inspect.queries import show_queries
from potok.statements.inspect.settings import show_properties, show_variables
from potok.statements.inspect.sources import describe_all, describe_source, show_sources, show_types
from potok.statements.inspect.topics import assert_topic, show_topics
from potok.statements.results import Rows

if TYPE_CHECKING:
    from potok.statements.database import Database
    from potok.statements.session import SqlSession

__all__ = ["assert_topic", "describe", "explain", "show"]


def show(database: Database, session: SqlSession, statement: ast.Show) -> Rows:
    """SHOW or LIST."""
    match statement.what:
        case "STREAMS" | "TABLES":
            return show_sources(database, tables=statement.what == "TABLES", extended=statement.extended)
        case "TOPICS" | "ALL TOPICS":
            everything = statement.what.startswith("ALL")
            return show_topics(database, everything=everything, extended=statement.extended)
        case "QUERIES":
            return show_queries(database, extended=statement.extended)
        case "FUNCTIONS":
            return show_functions()
        case "TYPES":
            return show_types(database)
        case "VARIABLES":
            return show_variables(session.variables)
        case "PROPERTIES":
            return show_properties(database.settings, session.properties)
    raise TypeError(f"cannot show {statement.what}")


def describe(database: Database, statement: ast.Describe) -> Rows:
    """DESCRIBE of a stream, a table, a function, or of all streams or tables."""
    match statement.kind:
        case "FUNCTION":
            return describe_function(statement.name, statement.at)
        case "STREAMS" | "TABLES":
            return describe_all(database, tables=statement.kind == "TABLES", extended=statement.extended)
    source = database.catalog.source(statement.name, statement.at)
    return describe_source(database, source, extended=statement.extended)
