"""SHOW, DESCRIBE, EXPLAIN and ASSERT. The columns are those of ksqlDB's CLI, and some more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from potok.sql.errors import SourceLocation, UnknownName, closest
from potok.sql.functions.function import AggregateFunction, SqlFunction, TableFunction
from potok.sql.functions.registry import all_functions, function_named, users_functions
from potok.sql.functions.result_types import result_of
from potok.sql.syntax import ast
from potok.statements.connectors import describe_connector, show_connectors
from potok.statements.inspect.explain import explain
from potok.statements.inspect.listing import listed, texts
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
        case "CONNECTORS" | "SOURCE CONNECTORS" | "SINK CONNECTORS":
            return show_connectors(database, statement)
        case "PROPERTIES":
            return show_properties(database.settings, session.properties)
    raise TypeError(f"cannot show {statement.what}")


def describe(database: Database, statement: ast.Describe) -> Rows:
    """DESCRIBE of a stream, a table, a function, a connector, or of all streams or tables."""
    match statement.kind:
        case "FUNCTION":
            return describe_function(statement.name, statement.at)
        case "CONNECTOR":
            return describe_connector(database, statement)
        case "STREAMS" | "TABLES":
            return describe_all(database, tables=statement.kind == "TABLES", extended=statement.extended)
    source = database.catalog.source(statement.name, statement.at)
    return describe_source(database, source, extended=statement.extended)


def show_functions() -> Rows:
    known = {**all_functions(), **users_functions()}
    rows = [(name, kind_of(known[name]), known[name].family, known[name].summary) for name in sorted(known)]
    return listed("functions", texts("Function Name", "Type", "Category", "Summary"), rows)


def describe_function(name: str, location: SourceLocation) -> Rows:
    """Show the signatures of a function and its description."""
    function = function_named(name)
    if function is None:
        hint = closest(name, {**all_functions(), **users_functions()}) or "SHOW FUNCTIONS lists them"
        raise UnknownName(f"there is no function {name}", hint=hint, location=location)
    details = [
        ("Name", function.name),
        ("Type", kind_of(function)),
        ("Category", function.family),
        ("Overview", function.summary),
        ("Example", function.example),
        ("Defined by", "the user" if name in users_functions() else "Potok"),
    ]
    rows = [(overload.signature, result_of(function, overload)) for overload in function.overloads]
    return listed("function", texts("Variation", "Returns"), rows, details)


def kind_of(function: SqlFunction) -> str:
    if isinstance(function, AggregateFunction):
        return "AGGREGATE"
    return "TABLE" if isinstance(function, TableFunction) else "SCALAR"
