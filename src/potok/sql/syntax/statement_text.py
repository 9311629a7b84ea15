"""Format statements as SQL; parsing the text returns the same statement."""

from __future__ import annotations

from collections.abc import Iterable

from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import listed, show, show_constant, show_type
from potok.sql.syntax.lexer.variables import quoted_text
from potok.sql.syntax.lexer.words import quoted
from potok.sql.syntax.row_pattern_text import show_duration, show_match, show_order


def show_statement(statement: ast.Statement) -> str:
    """Format a statement as SQL, without the `;`."""
    match statement:
        case ast.Query(query):
            return show_query(query)
        case ast.CreateSource() | ast.CreateAs():
            return _create(statement)
        case ast.CreateType(name, type_, if_not_exists):
            return _words("CREATE TYPE", if_not_exists and "IF NOT EXISTS", quoted(name), "AS", show_type(type_))
        case ast.CreateConnector(name, properties, if_not_exists):
            head = _words("CREATE SOURCE CONNECTOR", if_not_exists and "IF NOT EXISTS", quoted(name))
            return _words(head, _with(properties))
        case ast.AlterSource(is_table, name, columns):
            added = ", ".join(f"ADD COLUMN {_column(column)}" for column in columns)
            return _words("ALTER", _kind(is_table), quoted(name), added)
        case ast.Drop(kind, name, if_exists, delete_topic):
            return _words("DROP", kind, if_exists and "IF EXISTS", quoted(name), delete_topic and "DELETE TOPIC")
        case ast.InsertValues(name, columns, values):
            named = f"({', '.join(map(quoted, columns))})" if columns else ""
            return _words("INSERT INTO", quoted(name), named, f"VALUES ({listed(values)})")
        case ast.InsertSelect(name, query, properties):
            return _words("INSERT INTO", quoted(name), _with(properties), show_query(query))
        case _:
            return _steering(statement)


def _steering(statement: ast.Statement) -> str:
    match statement:
        case ast.Show(what, extended):
            return _words("SHOW", what, extended and "EXTENDED")
        case ast.Describe(name, kind, extended):
            return _words("DESCRIBE", kind, name and quoted(name), extended and "EXTENDED")
        case ast.Explain(explained, query_id):
            return _words("EXPLAIN", quoted(query_id) if explained is None else show_statement(explained))
        case ast.Print(topic, from_beginning, interval, limit):
            every = "" if interval is None else f"INTERVAL {interval}"
            return _words("PRINT", quoted_text(topic), from_beginning and "FROM BEGINNING", every, _limit(limit))
        case ast.Steer(action, query_id):
            return _words(action, query_id if query_id == "ALL" else quoted(query_id))
        case ast.SetProperty(name, value):
            return f"UNSET {quoted_text(name)}" if value is None else f"SET {quoted_text(name)} = {quoted_text(value)}"
        case ast.Define(name, value):
            return f"UNDEFINE {name}" if value is None else f"DEFINE {name} = {quoted_text(value)}"
        case ast.RunScript(path):
            return f"RUN SCRIPT {quoted_text(path)}"
        case ast.AssertTopic(topic, properties, timeout_ms, exists):
            absent = "" if exists else "NOT EXISTS"
            timeout = "" if timeout_ms is None else f"TIMEOUT {show_duration(timeout_ms)}"
            return _words("ASSERT", absent, "TOPIC", quoted_text(topic), _with(properties), timeout)
    raise TypeError(f"{type(statement).__name__} is not a statement")


def _create(statement: ast.CreateSource | ast.CreateAs) -> str:
    source = isinstance(statement, ast.CreateSource)
    head = _words(
        "CREATE",
        statement.or_replace and "OR REPLACE",
        isinstance(statement, ast.CreateSource) and statement.read_only and "SOURCE",
        _kind(statement.is_table),
        statement.if_not_exists and "IF NOT EXISTS",
        quoted(statement.name),
    )
    if isinstance(statement, ast.CreateAs):
        return _words(head, _with(statement.properties), "AS", show_query(statement.query))
    columns = f"({', '.join(map(_column, statement.columns))})" if source and statement.columns else ""
    return _words(head, columns, _with(statement.properties))


def _column(column: ast.ColumnDefinition) -> str:
    role = f"HEADER({quoted_text(column.header)})" if column.role == "HEADER" else column.role
    return _words(quoted(column.name), show_type(column.type), role)


def _with(properties: ast.Properties) -> str:
    if not properties:
        return ""
    return f"WITH ({', '.join(f'{quoted(given.name)} = {show_constant(given.value)}' for given in properties)})"


def show_query(query: ast.Select) -> str:
    """Format a SELECT as SQL."""
    return _words(
        f"SELECT {', '.join(map(_item, query.items))}",
        f"FROM {_relation(query.relation)}",
        *map(_join, query.joins),
        query.window and _window(query.window),
        query.where is not None and f"WHERE {show(query.where)}",
        query.group_by and f"GROUP BY {listed(query.group_by)}",
        query.partition_by and f"PARTITION BY {listed(query.partition_by)}",
        query.having is not None and f"HAVING {show(query.having)}",
        query.order_by and f"ORDER BY {', '.join(map(show_order, query.order_by))}",
        query.emit is not None and f"EMIT {query.emit.value}",
        _limit(query.limit),
    )


def _item(item: ast.SelectItem | ast.Everything | ast.EveryField) -> str:
    match item:
        case ast.Everything(source):
            return f"{quoted(source)}.*" if source else "*"
        case ast.EveryField(operand):
            # Format it like a field, with parentheses where a field needs them.
            return show(ast.FieldOf(operand, "F", at=item.at)).removesuffix("F") + "*"
        case ast.SelectItem(expression, alias):
            return _words(show(expression), alias and f"AS {quoted(alias)}")


def _relation(relation: ast.Relation) -> str:
    as_of = relation.as_of is not None and f"AS OF ({show(relation.as_of)})"
    alias = relation.alias and f"AS {quoted(relation.alias)}"
    if relation.match is None:
        return _words(quoted(relation.name), as_of, alias)
    inner = relation.row_alias and f"AS {quoted(relation.row_alias)}"
    return _words(quoted(relation.name), as_of, inner, show_match(relation.match), alias)


def _join(join: ast.Join) -> str:
    within = join.within
    apart = ""
    if within is not None:
        apart = f"WITHIN ({show_duration(within.before_ms)}, {show_duration(within.after_ms)})"
        apart += "" if within.grace_ms is None else f" GRACE PERIOD {show_duration(within.grace_ms)}"
    return _words(join.kind.value, "JOIN", _relation(join.relation), apart, "ON", show(join.condition))


def _window(window: ast.WindowClause) -> str:
    size = show_duration(window.size_ms)
    parts = [
        size if window.kind == "SESSION" else f"SIZE {size}",
        "" if window.advance_ms is None else f"ADVANCE BY {show_duration(window.advance_ms)}",
        "" if window.retention_ms is None else f"RETENTION {show_duration(window.retention_ms)}",
        "" if window.grace_ms is None else f"GRACE PERIOD {show_duration(window.grace_ms)}",
    ]
    return f"WINDOW {window.kind} ({', '.join(filter(None, parts))})"


def _limit(limit: int | None) -> str:
    return "" if limit is None else f"LIMIT {limit}"


def _kind(is_table: bool) -> str:
    return "TABLE" if is_table else "STREAM"


def _words(*parts: object) -> str:
    """Join the non-empty parts with spaces."""
    return " ".join(_there(parts))


def _there(parts: Iterable[object]) -> Iterable[str]:
    return (str(part) for part in parts if part)
