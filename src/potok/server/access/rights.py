"""What the scopes of a caller have to cover: the names behind queries, topics and statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from potok.server.access.callers import ADMIN, READ, WRITE, Caller
from potok.snapshots.progress import read_description
from potok.sql.errors import Refused
from potok.sql.properties import TOPIC_PREFIX, canonical
from potok.sql.syntax import ast
from potok.sql.syntax.walk import walk
from potok.statements.database import Database
from potok.statements.results import Result, Rows

DEAD_LETTERS = "-dead-letters"

EVERYTHING: tuple[str, ...] = ()
"""The names of what concerns all of them."""

_FILTERED = frozenset({"STREAMS", "TABLES", "TOPICS", "ALL TOPICS", "QUERIES"})
_HARMLESS = frozenset({"FUNCTIONS", "TYPES", "VARIABLES"})


class Need(NamedTuple):
    """A scope and the names that it has to hold for; `some` of any, if the result is filtered or concerns none."""

    scope: str
    names: tuple[str, ...] = EVERYTHING
    some: bool = False


def query_name(database: Database, query_id: str) -> str:
    """Return the name that decides who may see a query: the stream or table that a statement writes, or its own."""
    found = database.catalog_state().queries.get(query_id)
    return found.source if found is not None and found.source else query_id


def inputs_of(database: Database, query_id: str) -> tuple[str, ...]:
    """Return the name of a query and the topics that it reads: its dead letters and its state hold their records."""
    described = read_description(database.broker, query_id)
    if described is None:
        return (query_name(database, query_id),)
    return (query_name(database, query_id), *described.get("reads", ()))


def topic_names(database: Database, topic: str) -> tuple[str, ...]:
    """Return the names for a topic. The topic of dead letters holds records of the topics that the query reads."""
    query = topic.removesuffix(DEAD_LETTERS)
    return (topic,) if query == topic else (topic, *inputs_of(database, query))


def may_see_query(caller: Caller, database: Database, query_id: str) -> bool:
    return caller.may(READ) or caller.may(READ, query_name(database, query_id))


def allow(
    script: Sequence[ast.Parsed], caller: Caller, database: Database, properties: Mapping[str, str] | None = None
) -> None:
    """Raise if a script is not allowed, before executing any of it."""
    prefixes = {"", (properties or {}).get(TOPIC_PREFIX, "")}
    for parsed in script:
        statement = parsed.statement
        if isinstance(statement, ast.RunScript):
            hint = "send the statements of the script; or potok sql -f script.sql --server URL"
            error = Refused("a server does not read files for its clients", hint=hint, location=statement.at)
            raise error.in_text(parsed.in_script)
        if isinstance(statement, ast.SetProperty) and canonical(statement.name) == TOPIC_PREFIX:
            prefixes.add(statement.value or "")
        for need in needs_of(statement, database, prefixes):
            if need.some:
                caller.require_some(need.scope)
            else:
                caller.require(need.scope, *need.names)


def needs_of(statement: ast.Statement, database: Database, prefixes: Iterable[str] = ("",)) -> Iterator[Need]:
    """Return what a statement needs. Whoever declares a stream decides about its topic, and whoever may read it does
    not need the topic as well.

    Args:
        prefixes: What properties put in front of the names of topics.
    """
    match statement:
        case ast.CreateSource():
            topics = _topics(statement.properties)
            over = READ if statement.read_only and topics else ADMIN
            yield Need(ADMIN, (statement.name,) if topics else EVERYTHING)
            yield Need(over, topics)
            for topic in topics:
                yield Need(READ, topic_names(database, topic))
        case ast.CreateAs():
            topics = _topics(statement.properties) or tuple(f"{prefix}{statement.name}" for prefix in prefixes)
            yield Need(ADMIN, (statement.name, *topics))
            yield Need(READ, _relations(statement.query))
        case ast.InsertSelect():
            yield Need(ADMIN, (statement.name,))
            yield Need(READ, _relations(statement.query))
        case ast.AlterSource():
            yield Need(ADMIN, (statement.name,))
        case ast.Drop(kind="STREAM" | "TABLE"):
            source = database.catalog.sources.get(statement.name)
            deleted = (source.topic,) if statement.delete_topic and source is not None and source.topic else ()
            yield Need(ADMIN, (statement.name, *deleted))
        case ast.Steer():
            everything = statement.query_id.upper() == "ALL"
            yield Need(ADMIN, EVERYTHING if everything else (query_name(database, statement.query_id),))
        case ast.InsertValues():
            yield Need(WRITE, (statement.name,))
        case ast.Query():
            yield Need(READ, _relations(statement.query))
        case ast.Print():
            yield Need(READ, topic_names(database, statement.topic))
        case ast.AssertTopic():
            yield Need(READ, (statement.topic,))
        case ast.Explain():
            yield from _explained(statement, database)
        case ast.Show():
            is_filtered = statement.what in _FILTERED and not statement.extended
            yield Need(READ, some=is_filtered or statement.what in _HARMLESS)
        case ast.Describe(kind=""):
            yield Need(READ, EVERYTHING if statement.extended else (statement.name,))
        case ast.Describe(kind="FUNCTION") | ast.SetProperty() | ast.Define():
            yield Need(READ, some=True)
        case ast.Describe():
            yield Need(READ)
        case _:  # types, connectors, and whatever is added
            yield Need(ADMIN)


def _explained(statement: ast.Explain, database: Database) -> Iterator[Need]:
    if statement.statement is None:
        yield Need(READ, (query_name(database, statement.query_id),))
        return
    yield Need(READ, _relations(statement.statement) or EVERYTHING)


def _relations(node: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.name for part in walk(node) if isinstance(part, ast.Relation)))


def _topics(properties: Iterable[ast.Property]) -> tuple[str, ...]:
    return tuple(str(each.value) for each in properties if each.name.upper() == "KAFKA_TOPIC")


def visible(result: Result, statement: ast.Statement, caller: Caller, database: Database) -> Result:
    """Return a list without the names that the caller may not read."""
    if not isinstance(statement, ast.Show) or not _is_limited(statement, caller) or not isinstance(result, Rows):
        return result
    shown = tuple(row for row in result.rows if _may_list(statement, caller, database, str(row[0])))
    return replace(result, rows=shown)


def visible_entity(
    entity: Mapping[str, Any], statement: ast.Statement, caller: Caller, database: Database
) -> Mapping[str, Any]:
    """Return an entity of ksqlDB without the names that the caller may not read."""
    if isinstance(statement, ast.Describe) and "sourceDescription" in entity and not caller.may(READ):
        return {**entity, "sourceDescription": _visible_description(entity["sourceDescription"], caller, database)}
    if not isinstance(statement, ast.Show) or not _is_limited(statement, caller):
        return entity
    return {
        name: [one for one in value if _may_list(statement, caller, database, str(one.get("id") or one["name"]))]
        if isinstance(value, list) and name != "warnings"
        else value
        for name, value in entity.items()
    }


def _visible_description(found: Mapping[str, Any], caller: Caller, database: Database) -> Mapping[str, Any]:
    """Leave out the queries that read or write a source, and the sources derived from it, as lists do."""
    queries = {
        name: [one for one in found[name] if may_see_query(caller, database, str(one["id"]))]
        for name in ("readQueries", "writeQueries")
    }
    derived = [name for name in found["sourceConstraints"] if caller.may(READ, name)]
    return {**found, **queries, "sourceConstraints": derived}


def _is_limited(statement: ast.Show, caller: Caller) -> bool:
    return statement.what in _FILTERED and not caller.may(READ)


def _may_list(statement: ast.Show, caller: Caller, database: Database, name: str) -> bool:
    return caller.may(READ, query_name(database, name) if statement.what == "QUERIES" else name)
