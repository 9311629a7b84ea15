"""Parse statements that create, alter, drop and fill streams, tables and types."""

from __future__ import annotations

from decimal import Decimal

from potok.sql.syntax import ast
from potok.sql.syntax.expressions import CONSTANTS, expression, number
from potok.sql.syntax.lexer.cursor import Cursor
from potok.sql.syntax.lexer.tokens import Kind, Token
from potok.sql.syntax.queries import query
from potok.sql.syntax.type_names import type_name

SINKS = "a program in Python has sinks for that"


def create(cursor: Cursor) -> ast.Statement:
    first = cursor.expect("CREATE")
    or_replace = cursor.accept("OR")
    if or_replace:
        cursor.expect("REPLACE")
    if not or_replace and cursor.at("TYPE"):
        return _create_type(cursor, first)
    read_only = cursor.accept("SOURCE")
    if cursor.at("SINK", "CONNECTOR"):
        raise cursor.error("sink connectors are not supported", hint=SINKS)
    if cursor.at("CONNECTOR"):
        if or_replace or not read_only:
            raise cursor.error("a connector is a SOURCE CONNECTOR", hint="write CREATE SOURCE CONNECTOR")
        return _create_connector(cursor, first)
    what = ("STREAM", "TABLE") if or_replace or read_only else ("STREAM", "TABLE", "TYPE")
    is_table = cursor.one_of(*what) == "TABLE"
    if_not_exists = _if_not_exists(cursor)
    kind = "table" if is_table else "stream"
    name = cursor.name(f"a name for the {kind}")
    columns = _columns(cursor) if cursor.at_symbol("(") else ()
    given = properties(cursor) if cursor.accept("WITH") else None
    if cursor.at("AS"):
        _refuse_columns(cursor, columns, read_only)
        cursor.take()
        selected = query(cursor)
        return ast.CreateAs(is_table, name, selected, given or (), or_replace, if_not_exists, at=cursor.since(first))
    if not columns and given is None:
        raise cursor.expected("columns in parentheses, WITH (...) or AS SELECT", near=("WITH", "AS"))
    return ast.CreateSource(
        is_table, name, columns, given or (), or_replace, if_not_exists, read_only, at=cursor.since(first)
    )


def _refuse_columns(cursor: Cursor, columns: tuple[ast.ColumnDefinition, ...], read_only: bool) -> None:
    if columns:
        raise cursor.error("columns and AS SELECT cannot be combined", hint="name columns in the query: SELECT a AS b")
    if read_only:
        raise cursor.error("CREATE SOURCE cannot have a query", hint="remove SOURCE")


def _if_not_exists(cursor: Cursor) -> bool:
    """IF may also be a name; it starts the clause only together with the words that follow."""
    if cursor.at("IF", "EXISTS"):
        raise cursor.error("CREATE takes IF NOT EXISTS")
    if not cursor.at("IF", "NOT"):
        return False
    cursor.expect("IF", "NOT", "EXISTS")
    return True


def _if_exists(cursor: Cursor) -> bool:
    if cursor.at("IF", "NOT"):
        raise cursor.error("DROP takes IF EXISTS")
    return cursor.accept("IF", "EXISTS")


def _create_type(cursor: Cursor, first: Token) -> ast.CreateType:
    cursor.expect("TYPE")
    if_not_exists = _if_not_exists(cursor)
    name = cursor.name("a name for the type")
    cursor.expect("AS")
    return ast.CreateType(name, type_name(cursor), if_not_exists, at=cursor.since(first))


def _create_connector(cursor: Cursor, first: Token) -> ast.CreateConnector:
    cursor.expect("CONNECTOR")
    if_not_exists = _if_not_exists(cursor)
    name = cursor.name("a name for the connector")
    cursor.expect("WITH")
    return ast.CreateConnector(name, properties(cursor), if_not_exists, at=cursor.since(first))


def _columns(cursor: Cursor) -> tuple[ast.ColumnDefinition, ...]:
    cursor.expect_symbol("(")
    columns = [_column(cursor)]
    while cursor.another(columns):
        if cursor.at_symbol(")"):
            raise cursor.error("a column is missing after the comma", hint="remove the comma")
        columns.append(_column(cursor))
    cursor.expect_symbol(")")
    return tuple(columns)


def _column(cursor: Cursor) -> ast.ColumnDefinition:
    first = cursor.peek()
    name = cursor.name("the name of a column")
    type_ = type_name(cursor)
    role = header = ""
    if cursor.accept("PRIMARY"):
        cursor.expect("KEY")
        role = "PRIMARY KEY"
    elif cursor.accept("KEY"):
        role = "KEY"
    elif cursor.accept("HEADERS"):
        role = "HEADERS"
    elif cursor.accept("HEADER"):
        role = "HEADER"
        cursor.expect_symbol("(", hint="write HEADER('name'), or HEADERS for all of them")
        header = cursor.string("the name of a header in quotes")
        cursor.expect_symbol(")")
    elif not (cursor.at_symbol(",") or cursor.at_symbol(")")):
        words = ("PRIMARY", "KEY", "HEADERS", "HEADER")
        raise cursor.expected("a comma, ), KEY, PRIMARY KEY, HEADERS or HEADER('name')", near=words)
    return ast.ColumnDefinition(name, type_, role, header, at=cursor.since(first))


def properties(cursor: Cursor) -> ast.Properties:
    """Parse the properties after WITH."""
    cursor.expect_symbol("(")
    found: list[ast.Property] = []
    while True:
        token = cursor.peek()
        name = cursor.take().value if token.kind is Kind.STRING else cursor.name("the name of a property")
        if any(name.upper() == other.name for other in found):
            raise cursor.error(f"{name.upper()} is given twice", token, hint="leave one of them out")
        cursor.expect_symbol("=")
        first = cursor.peek()
        value = _constant(cursor)
        location = cursor.source.location(token.start, token.end)
        found.append(ast.Property(name.upper(), value, at=location, value_at=cursor.since(first)))
        if not cursor.another(found):
            break
    cursor.expect_symbol(")")
    return tuple(found)


def _constant(cursor: Cursor) -> bool | int | Decimal | float | str | None:
    token = cursor.peek()
    if token.kind is Kind.STRING:
        return cursor.take().value
    if token.kind is Kind.WORD and token.value in CONSTANTS:
        return CONSTANTS[cursor.take().value]
    if token.kind in (Kind.WORD, Kind.QUOTED):
        raise cursor.expected("a text, a number, TRUE or FALSE", hint=f"write '{token.written}' in single quotes")
    return number(cursor)


def alter(cursor: Cursor) -> ast.Statement:
    first = cursor.expect("ALTER")
    if cursor.at("SYSTEM"):
        raise cursor.error("ALTER SYSTEM is not supported", hint="SET 'name' = 'value' sets a property")
    is_table = cursor.one_of("STREAM", "TABLE") == "TABLE"
    name = cursor.name("the name of a stream or table")
    columns = [_added(cursor)]
    while cursor.another(columns):
        columns.append(_added(cursor))
    return ast.AlterSource(is_table, name, tuple(columns), at=cursor.since(first))


def _added(cursor: Cursor) -> ast.ColumnDefinition:
    if cursor.at("DROP") or cursor.at("RENAME"):
        raise cursor.error("columns can only be added", hint="ALTER STREAM s ADD COLUMN c INT")
    cursor.expect("ADD")
    if cursor.at("COLUMN") and cursor.at_name(ahead=2):
        cursor.take()
    first = cursor.peek()
    name = cursor.name("the name of a column")
    return ast.ColumnDefinition(name, type_name(cursor), at=cursor.since(first))


def drop(cursor: Cursor) -> ast.Statement:
    first = cursor.expect("DROP")
    kind = cursor.one_of("STREAM", "TABLE", "TYPE", "CONNECTOR")
    if_exists = _if_exists(cursor)
    name = cursor.name(f"the name of a {kind.lower()}")
    delete_topic = False
    if cursor.at("DELETE"):
        if kind in ("TYPE", "CONNECTOR"):
            raise cursor.error(f"a {kind.lower()} has no topic of its own")
        cursor.expect("DELETE", "TOPIC")
        delete_topic = True
    return ast.Drop(kind, name, if_exists, delete_topic, at=cursor.since(first))


def insert(cursor: Cursor) -> ast.Statement:
    first = cursor.expect("INSERT")
    cursor.expect("INTO")
    name = cursor.name("the name of a stream or table")
    if cursor.accept("WITH"):
        given = properties(cursor)
        return ast.InsertSelect(name, query(cursor), given, at=cursor.since(first))
    if cursor.at("SELECT"):
        return ast.InsertSelect(name, query(cursor), at=cursor.since(first))
    columns: list[str] = []
    if cursor.at_symbol("("):
        opening = cursor.take()
        columns.append(cursor.name("the name of a column"))
        while cursor.another(columns):
            columns.append(cursor.name("the name of a column"))
        cursor.close(opening, ")")
    if not cursor.accept("VALUES"):
        raise cursor.expected(
            "VALUES" if columns else "VALUES, SELECT or columns in parentheses", near=("VALUES", "SELECT")
        )
    values = _values(cursor, columns)
    return ast.InsertValues(name, tuple(columns), values, at=cursor.since(first))


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _values(cursor: Cursor, columns: list[str]) -> tuple[ast.Expression, ...]:
    opening = cursor.expect_symbol("(")
    values = [expression(cursor)]
    while cursor.another(values):
        values.append(expression(cursor))
    cursor.close(opening, ")")
    if columns and len(columns) != len(values):
        raise cursor.error(f"{_count(len(columns), 'column')}, but {_count(len(values), 'value')}", opening)
    if cursor.at_symbol(","):
        raise cursor.error("INSERT writes one record", hint="write one INSERT for each of them")
    return tuple(values)
