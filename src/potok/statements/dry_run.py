"""Check a script without executing it. Each statement is checked against the catalog that the previous ones would
leave."""

from __future__ import annotations

from collections.abc import Mapping

from potok.sql.errors import SqlError, SqlSyntaxError, UnknownName
from potok.sql.properties import Properties
from potok.sql.syntax import ast
from potok.sql.syntax.parse import Unparsed, parse_leniently
from potok.sql.syntax.statement_text import show_statement
from potok.sql.syntax.type_names import resolve
from potok.sql.syntax.walk import walk
from potok.statements.database import Database
from potok.statements.inspect.settings import set_property
from potok.statements.messages import command_id_of
from potok.statements.prepared import parsed_script
from potok.statements.pull.pull import check_pull
from potok.statements.push.push import check_push


class DryRun:
    """The catalog that a script would leave.

    A script that was executed before can be checked again: a CREATE or ALTER that matches the catalog is valid.
    Statements that depend on an invalid one are not reported.
    """

    def __init__(self, database: Database, properties: Mapping[str, str]) -> None:
        self._database, self._properties = database, dict(properties)
        self._there = self._state = database.catalog_state()
        self._repeated: set[str] = set()
        """Statements that the script repeats from the catalog, word for word; repeating one twice is an error."""
        self._added: set[tuple[str, str]] = set()
        """Columns that the script adds to streams and tables."""
        self._failed: set[str] = set()
        """Names that the script failed to create."""

    def mistakes(self, text: str, variables: Mapping[str, str]) -> list[SqlError]:
        """Return all errors of a script, each with its line."""
        found: list[SqlError] = []
        for parsed in parse_leniently(text, variables):
            if isinstance(parsed, Unparsed):
                found.append(parsed.error)
                self._failed |= {parsed.makes} - {""}
                continue
            made = _made_by(parsed.statement)
            try:
                self._go_through(parsed)
                self._failed -= made
            except SqlError as error:
                if not self._follows(parsed.statement, error):
                    found.append(_in_script(error, text))
                self._failed |= made
        return found

    def _go_through(self, parsed: ast.Parsed) -> None:
        statement = parsed.statement
        if isinstance(statement, ast.Query):
            checked = check_pull if statement.query.emit is None else check_push
            checked(self._state.catalog, statement.query, Properties.of(self._properties))
        elif isinstance(statement, ast.SetProperty):
            set_property(self._properties, statement)
        elif self._exists_already(statement):
            self._repeated |= _made_by(statement)
        elif command_id_of(statement):
            self._state = self._database.preview(parsed, self._properties, self._state)
        if isinstance(statement, ast.AlterSource):
            self._added |= {(statement.name, column.name) for column in statement.columns}

    def _exists_already(self, statement: ast.Statement) -> bool:
        """Return whether a statement matches the catalog and the script has not changed what it names."""
        match statement:
            case ast.CreateSource(name=name) | ast.CreateAs(name=name):
                source = self._state.catalog.sources.get(name)
                there = source is not None and source is self._there.catalog.sources.get(name)
                return there and name not in self._repeated and _declares(source.statement if source else "", statement)
            case ast.CreateConnector(name=name):
                connectors = self._state.catalog.connectors
                there = name in connectors and connectors[name] is self._there.catalog.connectors.get(name)
                return (
                    there
                    and f"CONNECTOR {name}" not in self._repeated
                    and _declares(connectors[name].statement, statement)
                )
            case ast.CreateType(name=name):
                types = self._state.catalog.types
                there = name in types and types[name] is self._there.catalog.types.get(name)
                return there and name not in self._repeated and resolve(statement.type, types) == types[name]
            case ast.InsertSelect():
                return any(self._runs(query_id, statement) for query_id in _made_by(statement) - self._repeated)
            case ast.AlterSource():
                return all(self._has(statement, column) for column in statement.columns)
        return False

    def _has(self, statement: ast.AlterSource, column: ast.ColumnDefinition) -> bool:
        """Return whether a stream or table had a column before this script and still has it."""
        catalogs = (self._state.catalog, self._there.catalog)
        sources = [catalog.sources.get(statement.name) for catalog in catalogs]
        found = [source.column(column.name) for source in sources if source and source.is_table == statement.is_table]
        wanted = resolve(column.type, self._state.catalog.types)
        added = (statement.name, column.name) in self._added
        return not added and len(found) == 2 and all(one is not None and one.type == wanted for one in found)

    def _runs(self, query_id: str, statement: ast.InsertSelect) -> bool:
        query = self._state.queries.get(query_id)
        there = query is not None and query is self._there.queries.get(query_id)
        return there and _declares(query.text if query else "", statement)

    def _follows(self, statement: ast.Statement, error: SqlError) -> bool:
        """Return whether an error may be a consequence of a failed statement. If the name existed before the script,
        any error about it may be."""
        missed = _read_by(statement) & self._failed
        catalog = self._state.catalog
        return bool(missed) and (
            isinstance(error, UnknownName) or bool(missed & (catalog.sources.keys() | catalog.types.keys()))
        )


def _declares(text: str, statement: ast.Statement) -> bool:
    """Return whether a text is that statement, apart from white space."""
    return bool(text) and [show_statement(parsed.statement) for parsed in parsed_script(text)] == [
        show_statement(statement)
    ]


def _made_by(statement: ast.Statement) -> set[str]:
    """Return the name that a statement creates."""
    match statement:
        case ast.CreateSource(name=name) | ast.CreateAs(name=name) | ast.CreateType(name=name):
            return {name}
        case ast.CreateConnector(name=name):
            return {f"CONNECTOR {name}"}
        case ast.InsertSelect(properties=properties):
            return {str(given.value).upper() for given in properties if given.name == "QUERY_ID"}
    return set()


def _read_by(statement: ast.Statement) -> set[str]:
    """Return the streams, tables and types that a statement refers to."""
    named = {part.name for part in walk(statement) if isinstance(part, ast.Relation | ast.TypeName)}
    if isinstance(statement, ast.InsertSelect | ast.AlterSource | ast.Drop):
        named.add(statement.name)
    return named


def _in_script(error: SqlError, text: str) -> SqlError:
    if not isinstance(error, SqlSyntaxError):
        # The error position counts from the start of the statement, not of the script.
        error.line_text = ""
    return error.in_text(text)
