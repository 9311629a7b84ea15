"""A script gone through without carrying anything out: one statement builds on the other."""

from __future__ import annotations

from collections.abc import Mapping

from potok.sql.errors import SqlError, SyntaxMistake, UnknownName
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
    """What would become of a catalogue.

    A script that was carried out already may be checked again: a CREATE or ALTER that says what stands there is right.
    After one that is wrong, those that build on it are not blamed for it.
    """

    def __init__(self, database: Database, properties: Mapping[str, str]) -> None:
        self._database, self._properties = database, dict(properties)
        self._there = self._books = database.books()
        self._repeated: set[str] = set()
        """What the script makes again, word for word: a second time would be once too often."""
        self._added: set[tuple[str, str]] = set()
        """The columns that the script adds to streams and tables."""
        self._failed: set[str] = set()
        """What the script could not make."""

    def mistakes(self, text: str, variables: Mapping[str, str]) -> list[SqlError]:
        """All that is wrong with a script, each with its line."""
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
            checked(self._books.catalog, statement.query, Properties.of(self._properties))
        elif isinstance(statement, ast.SetProperty):
            set_property(self._properties, statement)
        elif self._stands(statement):
            self._repeated |= _made_by(statement)
        elif command_id_of(statement):
            self._books = self._database.preview(parsed, self._properties, self._books)
        if isinstance(statement, ast.AlterSource):
            self._added |= {(statement.name, column.name) for column in statement.columns}

    def _stands(self, statement: ast.Statement) -> bool:
        """Whether a statement says what the catalogue holds already, and no statement of this script has touched."""
        match statement:
            case ast.CreateSource(name=name) | ast.CreateAs(name=name):
                source = self._books.catalog.sources.get(name)
                there = source is not None and source is self._there.catalog.sources.get(name)
                return there and name not in self._repeated and _says(source.statement if source else "", statement)
            case ast.CreateType(name=name):
                types = self._books.catalog.types
                there = name in types and types[name] is self._there.catalog.types.get(name)
                return there and name not in self._repeated and resolve(statement.type, types) == types[name]
            case ast.InsertSelect():
                return any(self._runs(query_id, statement) for query_id in _made_by(statement) - self._repeated)
            case ast.AlterSource():
                return all(self._has(statement, column) for column in statement.columns)
        return False

    def _has(self, statement: ast.AlterSource, column: ast.ColumnDefinition) -> bool:
        """Whether a stream or table had a column before this script, and has it still."""
        catalogs = (self._books.catalog, self._there.catalog)
        sources = [catalog.sources.get(statement.name) for catalog in catalogs]
        found = [source.column(column.name) for source in sources if source and source.is_table == statement.is_table]
        wanted = resolve(column.type, self._books.catalog.types)
        added = (statement.name, column.name) in self._added
        return not added and len(found) == 2 and all(one is not None and one.type == wanted for one in found)

    def _runs(self, query_id: str, statement: ast.InsertSelect) -> bool:
        query = self._books.queries.get(query_id)
        there = query is not None and query is self._there.queries.get(query_id)
        return there and _says(query.text if query else "", statement)

    def _follows(self, statement: ast.Statement, error: SqlError) -> bool:
        """Whether a mistake may be no other than that something was not made. Where something of the name stands there
        from before, whatever is said of it may be so."""
        missed = _read_by(statement) & self._failed
        catalog = self._books.catalog
        return bool(missed) and (
            isinstance(error, UnknownName) or bool(missed & (catalog.sources.keys() | catalog.types.keys()))
        )


def _says(text: str, statement: ast.Statement) -> bool:
    """Whether a text is that statement, however it is spaced."""
    return bool(text) and [show_statement(parsed.statement) for parsed in parsed_script(text)] == [
        show_statement(statement)
    ]


def _made_by(statement: ast.Statement) -> set[str]:
    """The name that a statement gives to what it makes."""
    match statement:
        case ast.CreateSource(name=name) | ast.CreateAs(name=name) | ast.CreateType(name=name):
            return {name}
        case ast.InsertSelect(properties=properties):
            return {str(given.value).upper() for given in properties if given.name == "QUERY_ID"}
    return set()


def _read_by(statement: ast.Statement) -> set[str]:
    """The streams, tables and types that a statement builds on."""
    named = {part.name for part in walk(statement) if isinstance(part, ast.Relation | ast.TypeName)}
    if isinstance(statement, ast.InsertSelect | ast.AlterSource | ast.Drop):
        named.add(statement.name)
    return named


def _in_script(error: SqlError, text: str) -> SqlError:
    if not isinstance(error, SyntaxMistake):
        # Whoever raised it had the statement alone, whose lines count from elsewhere.
        error.line_text = ""
    return error.in_text(text)
