"""The catalog and the queries that should run, as the result of the commands so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.sql.catalog import AlreadyThere, Catalog, Connector, Source
from potok.sql.definitions import altered, defined
from potok.sql.errors import Refused, SourceLocation, UnknownName, closest
from potok.sql.planner.persist import lower_create, lower_insert, lower_source_table
from potok.sql.properties import OFFSET_RESET, Properties
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script
from potok.sql.syntax.type_names import resolve
from potok.sql.types import quoted, type_name
from potok.statements.catalog.command_log import Command
from potok.statements.errors import UnknownQuery
from potok.statements.messages import kind_of
from potok.statements.queries.processing_log import LOG_STREAM
from potok.topology.graph import Topology


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query that should run. `start` is its start position if it has never run."""

    query_id: str
    text: str
    kind: str
    """CSAS, CTAS, INSERT or SOURCE TABLE."""
    source: str
    topology: Topology
    start: str = "earliest"
    paused: bool = False
    sequence: int = 0
    """The sequence number of the command that defined it: the same text may mean something else after its sources were
    altered."""
    broken: str = ""
    """Why its statement cannot be executed in this process; its topology is then empty."""


@dataclass(frozen=True, slots=True)
class CatalogState:
    """The catalog, and the queries that should run. Immutable: a command returns a new state."""

    catalog: Catalog
    queries: dict[str, Wanted]

    def after(self, parsed: ast.Parsed, command: Command, broker: Broker) -> CatalogState:
        """Return the state after one more command. Raises `SqlError` if the command is invalid."""
        try:
            return _Writing(self, parsed, command, broker).catalog_state()
        except (Refused, UnknownName) as error:
            raise error.in_text(parsed.in_script) from None

    def after_broken(self, command: Command, error: PotokError) -> CatalogState:
        """Return the state after a command that another process executed and this one cannot, because it lacks a
        function or depends on another such command. The query is kept with the reason, its stream or table is missing
        until it can be loaded, and nothing else changes."""
        try:
            statement = parsed_of(command).statement
        except PotokError:
            statement = None
        catalog, queries, name = self.catalog, dict(self.queries), getattr(statement, "name", "")
        if isinstance(statement, ast.CreateSource | ast.CreateAs) and name not in catalog.sources:
            catalog = catalog.with_missing(name, error.message)
        if command.query_id:
            kind = "" if statement is None else kind_of(statement)
            nothing = Topology(command.query_id, ())
            queries[command.query_id] = Wanted(
                command.query_id, command.text, kind, name, nothing, sequence=command.sequence, broken=error.message
            )
        return CatalogState(catalog, queries)

    def query_of(self, name: str) -> str:
        """Return the query that writes or materializes a stream or table, even if its statement cannot be loaded; "" if
        there is none."""
        known = self.catalog.sources.get(name)
        if known is not None:
            return known.query
        return next((q.query_id for q in self.queries.values() if q.source == name and q.kind in ("CSAS", "CTAS")), "")

    @property
    def referenced(self) -> set[str]:
        """Return all queries whose state is still in use: they run, could resume, or have rows to read."""
        owned = {query for source in self.catalog.sources.values() for query in (source.query, source.table_of)}
        return (owned | self.queries.keys()) - {""}

    @property
    def broken(self) -> dict[str, str]:
        """Return the names that cannot be loaded or run in this process, with the reason."""
        queries = [query for query in self.queries.values() if query.broken]
        return dict(self.catalog.missing) | {
            query.query_id: query.broken for query in queries if query.source not in self.catalog.missing
        }

    def left_by(self, query_id: str) -> str:
        """Return the stream or table of a terminated query, or "" if there is none."""
        of = (source for source in self.catalog.sources.values() if query_id in (source.query, source.table_of))
        return "" if query_id in self.queries else next((source.name for source in of), "")

    def readers(self, source: Source) -> list[str]:
        """Return the queries that read what a source writes to or reads from, except the one that writes it."""
        found = [q for q in self.queries.values() if source.topic in q.topology.source_topics]
        return sorted(query.query_id for query in found if query.query_id != source.table_of or query.kind == "CTAS")

    def writers(self, source: Source) -> list[str]:
        return sorted(q.query_id for q in self.queries.values() if source.topic in q.topology.sink_topics)

    def cycle(self, query_id: str) -> list[str]:
        """Return the topics on the shortest path from the sink of a query back to its sources, both included; empty if
        there is none."""
        own = self.queries[query_id].topology
        ways, seen = [[topic] for topic in own.sink_topics], set[str]()
        for way in ways:
            last = way[-1]
            if last in own.source_topics:
                return way
            if last not in seen:
                seen.add(last)
                readers = [other.topology for other in self.queries.values() if last in other.topology.source_topics]
                ways += [[*way, topic] for reader in readers for topic in reader.sink_topics]
        return []


EMPTY = CatalogState(Catalog(built_in={LOG_STREAM.name: LOG_STREAM}), {})


def parsed_of(command: Command) -> ast.Parsed:
    return _parsed(command.text)


def statement_of(wanted: Wanted) -> ast.Statement:
    """Return the statement that started a query."""
    return _parsed(wanted.text).statement


@lru_cache(4096)
def _parsed(text: str) -> ast.Parsed:
    (found,) = parse_script(text)
    return found


class _Writing:
    """Applies one command to a state."""

    def __init__(self, before: CatalogState, parsed: ast.Parsed, command: Command, broker: Broker) -> None:
        self._before, self._command, self._broker = before, command, broker
        self._parsed, self._catalog = parsed, before.catalog
        self._properties = Properties.of(command.properties)

    def catalog_state(self) -> CatalogState:
        statement = self._parsed.statement
        match statement:
            case ast.CreateSource():
                return self._create(statement)
            case ast.CreateAs():
                return self._create_as(statement)
            case ast.InsertSelect():
                return self._insert(statement)
            case ast.CreateType():
                return self._create_type(statement)
            case ast.CreateConnector():
                return self._create_connector(statement)
            case ast.AlterSource():
                return self._alter(statement)
            case ast.Drop():
                return self._drop(statement)
            case ast.Steer():
                return self._steer(statement)
        raise TypeError(f"{type(statement).__name__} does not change the catalog")

    def _create(self, statement: ast.CreateSource) -> CatalogState:
        known = self._replaced(statement)
        source = defined(statement, self._catalog, self._parsed.text, self._properties)
        source = replace(source, partitions=source.partitions or self._partitions(source.topic))
        queries = self._without_those_of(known, statement.name)
        if source.is_table and source.read_only:
            query_id = self._command.query_id
            source = replace(source, query="", table_of=query_id)
            topology = lower_source_table(source, query_id)
            queries[query_id] = self._wanted("SOURCE TABLE", source.name, topology, "earliest")
        return CatalogState(self._catalog.with_source(source), queries)

    def _replaced(self, statement: ast.CreateSource | ast.CreateAs) -> Source | None:
        """Return what a CREATE statement replaces, if it exists."""
        name, known = statement.name, self._catalog.sources.get(statement.name)
        if known is not None and not statement.or_replace:
            raise AlreadyThere(known, statement.at)
        if name in self._catalog.missing and not statement.or_replace:
            hint = "write CREATE OR REPLACE, or DROP it first"
            why = self._catalog.missing[name]
            raise Refused(f"{quoted(name)} exists but cannot be loaded: {why}", hint=hint, location=statement.at)
        if known is not None and known.is_table != statement.is_table:
            hint = f"DROP {known.kind} {quoted(known.name)} first"
            raise Refused(f"{quoted(known.name)} is a {known.kind.lower()}", hint=hint, location=statement.at)
        return known

    def _without_those_of(self, known: Source | None, name: str) -> dict[str, Wanted]:
        """Return the queries other than the one that writes or materializes a source."""
        own = {
            q.query_id for q in self._before.queries.values() if q.broken and q.source == name and q.kind != "INSERT"
        }
        if known is not None:
            own |= {known.query, known.table_of}
        return {query_id: wanted for query_id, wanted in self._before.queries.items() if query_id not in own}

    def _wanted(self, kind: str, name: str, topology: Topology, start: str) -> Wanted:
        command = self._command
        return Wanted(command.query_id, command.text, kind, name, topology, start, sequence=command.sequence)

    def _partitions(self, topic: str) -> int | None:
        return self._broker.partitions(topic) if self._broker.has_topic(topic) else None

    def _create_as(self, statement: ast.CreateAs) -> CatalogState:
        known = self._replaced(statement)
        query_id = self._command.query_id
        made = lower_create(statement, self._catalog, query_id, self._parsed.text, self._properties)
        wanted = self._wanted(kind_of(statement), statement.name, made.topology, self._begin)
        queries = self._without_those_of(known, statement.name)
        return CatalogState(self._catalog.with_source(made.source), {**queries, query_id: wanted})

    def _insert(self, statement: ast.InsertSelect) -> CatalogState:
        query_id = self._command.query_id
        made = lower_insert(statement, self._catalog, query_id, self._properties)
        wanted = self._wanted(kind_of(statement), statement.name, made.topology, self._begin)
        return replace(self._before, queries={**self._before.queries, query_id: wanted})

    @property
    def _begin(self) -> str:
        return self._command.properties.get(OFFSET_RESET, "earliest")

    def _create_type(self, statement: ast.CreateType) -> CatalogState:
        if statement.name in self._catalog.types:
            rendered = type_name(self._catalog.types[statement.name])
            hint = f"it is {rendered}; DROP TYPE {quoted(statement.name)} first"
            raise Refused(f"type {quoted(statement.name)} already exists", hint=hint, location=statement.at)
        type_ = resolve(statement.type, self._catalog.types)
        return replace(self._before, catalog=self._catalog.with_type(statement.name, type_))

    def _create_connector(self, statement: ast.CreateConnector) -> CatalogState:
        if statement.name in self._catalog.connectors:
            hint = f"DROP CONNECTOR {quoted(statement.name)} first"
            text = f"connector {quoted(statement.name)} already exists"
            raise Refused(text, hint=hint, location=statement.at)
        options = {given.name.lower(): given.value for given in statement.properties}
        made = Connector(statement.name, options, self._parsed.text)
        return replace(self._before, catalog=self._catalog.with_connector(made))

    def _alter(self, statement: ast.AlterSource) -> CatalogState:
        source = self._catalog.source(statement.name, statement.at)
        self._check_own(source, statement.at)
        if source.is_table != statement.is_table:
            hint = f"write ALTER {source.kind} {quoted(source.name)}"
            raise Refused(f"{quoted(source.name)} is a {source.kind.lower()}", hint=hint, location=statement.at)
        if source.query:
            hint = "CREATE OR REPLACE it with a query that selects the column"
            raise Refused(f"{quoted(source.name)} gets its columns from its query", hint=hint, location=statement.at)
        return replace(self._before, catalog=self._catalog.with_source(altered(source, statement, self._catalog)))

    def _check_own(self, source: Source, location: SourceLocation) -> None:
        if source.name not in self._catalog.sources:
            hint = "it is built in; you can create your own stream with this name"
            raise Refused(f"{quoted(source.name)} is built in and cannot be changed", hint=hint, location=location)

    def _drop(self, statement: ast.Drop) -> CatalogState:
        if statement.kind == "TYPE":
            if statement.name not in self._catalog.types:
                raise _unknown_type(statement, self._catalog)
            return replace(self._before, catalog=self._catalog.without_type(statement.name))
        if statement.kind == "CONNECTOR":
            self._catalog.connector(statement.name, statement.at)
            return replace(self._before, catalog=self._catalog.without_connector(statement.name))
        if statement.name in self._catalog.missing:
            return self._drop_missing(statement)
        source = self._catalog.source(statement.name, statement.at)
        self._check_own(source, statement.at)
        if source.kind != statement.kind:
            hint = f"write DROP {source.kind} {quoted(source.name)}"
            raise Refused(f"{quoted(source.name)} is a {source.kind.lower()}", hint=hint, location=statement.at)
        own = {source.query, source.table_of}
        others = [i for i in (*self._before.readers(source), *self._before.writers(source)) if i not in own]
        if others:
            hint = f"terminate them first: {' '.join(f'TERMINATE {query_id};' for query_id in dict.fromkeys(others))}"
            raise Refused(
                f"queries use {quoted(source.name)}: {', '.join(dict.fromkeys(others))}",
                hint=hint,
                location=statement.at,
            )
        return CatalogState(self._catalog.without_source(source.name), self._without_those_of(source, source.name))

    def _drop_missing(self, statement: ast.Drop) -> CatalogState:
        if statement.delete_topic:
            hint = "leave DELETE TOPIC out"
            raise Refused(
                f"the topic of {quoted(statement.name)} is unknown in this process", hint=hint, location=statement.at
            )
        return CatalogState(self._catalog.without_source(statement.name), self._without_those_of(None, statement.name))

    def _steer(self, statement: ast.Steer) -> CatalogState:
        queries = dict(self._before.queries)
        chosen = list(queries) if statement.query_id == "ALL" else [self._known(statement.query_id, statement.at)]
        for query_id in chosen:
            if statement.action == "TERMINATE":
                del queries[query_id]
            else:
                queries[query_id] = replace(queries[query_id], paused=statement.action == "PAUSE")
        return replace(self._before, queries=queries)

    def _known(self, query_id: str, location: SourceLocation) -> str:
        known = list(self._before.queries)
        if query_id not in known:
            raise UnknownQuery(query_id, known, location, left=self._before.left_by(query_id))
        return query_id


def _unknown_type(statement: ast.Drop, catalog: Catalog) -> UnknownName:
    hint = closest(statement.name, catalog.types) or "SHOW TYPES lists them"
    return UnknownName(f"there is no type {quoted(statement.name)}", hint=hint, location=statement.at)
