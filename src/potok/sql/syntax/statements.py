"""Parse statements: dispatch by the first words, and the statements that inspect and control."""

from __future__ import annotations

import re
from collections.abc import Callable

from potok.sql.syntax import ast
from potok.sql.syntax.definitions import alter, create, drop, insert, properties
from potok.sql.syntax.lexer.cursor import Cursor, misspelt
from potok.sql.syntax.lexer.tokens import Kind
from potok.sql.syntax.lexer.words import CLAUSE_PAIRS, CLAUSES, STATEMENTS
from potok.sql.syntax.queries import query
from potok.sql.syntax.windows import duration

SHOWN = ("STREAMS", "TABLES", "TOPICS", "QUERIES", "FUNCTIONS", "TYPES", "VARIABLES", "PROPERTIES", "CONNECTORS")
CONTINUING = (
    *(clause.split()[0] for clause in CLAUSES),
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "EXTENDED",
    "DELETE",
    "WITH",
)
"""Words that continue a statement: one of them may be misspelled where a statement does not end."""

EXTENDABLE = ("STREAMS", "TABLES", "TOPICS", "QUERIES")


def statement(cursor: Cursor) -> ast.Statement:
    token = cursor.peek()
    grammar = GRAMMARS.get(token.value) if token.kind is Kind.WORD else None
    if grammar is None:
        if token.kind is Kind.END:
            raise cursor.error("there is no statement here")
        hint = misspelt(token.value, STATEMENTS) or f"statements begin with {', '.join(STATEMENTS)}"
        raise cursor.error(f"no statement begins with {token.written}", token, hint=hint)
    found = grammar(cursor)
    if not cursor.done:
        raise _too_much(cursor)
    return found


def _too_much(cursor: Cursor) -> Exception:
    token = cursor.peek()
    if token.kind is Kind.WORD and token.value in STATEMENTS and token.value not in ("SET", "RUN", "LIST"):
        previous = cursor.previous or token
        return cursor.error(
            "the statement does not end before the next one", previous, hint=f"write ; between it and {token.written}"
        )
    if cursor.at_symbol("->") and cursor.at_symbol("*", 1):
        return cursor.error("->* stands for all fields only in SELECT")
    before = cursor.previous
    hint = cursor.expected("", near=CONTINUING).hint
    if before is not None and before.kind is Kind.WORD and (before.value, "BY") in CLAUSE_PAIRS:
        hint = f"write {before.value} BY"
    return cursor.error(f"the statement should end here, found {token.written}", token, hint=hint)


def _select(cursor: Cursor) -> ast.Statement:
    first = cursor.peek()
    return ast.Query(query(cursor), at=cursor.since(first))


def _show(cursor: Cursor) -> ast.Statement:
    first = cursor.take()
    for kind in ("SOURCE", "SINK"):
        if cursor.accept(kind):
            cursor.expect("CONNECTORS")
            return ast.Show(f"{kind} CONNECTORS", at=cursor.since(first))
    everything = cursor.accept("ALL")
    what = cursor.one_of("TOPICS") if everything else cursor.one_of(*SHOWN)
    extended = what in EXTENDABLE and cursor.accept("EXTENDED")
    return ast.Show(f"ALL {what}" if everything else what, extended, at=cursor.since(first))


def _describe(cursor: Cursor) -> ast.Statement:
    first = cursor.take()
    if cursor.at("FUNCTION") and cursor.at_name(ahead=1) and not cursor.at("EXTENDED", ahead=1):
        cursor.take()
        return ast.Describe(cursor.name("the name of a function").upper(), "FUNCTION", at=cursor.since(first))
    if cursor.at("CONNECTOR") and cursor.at_name(ahead=1):
        cursor.take()
        return ast.Describe(cursor.name("the name of a connector"), "CONNECTOR", at=cursor.since(first))
    if cursor.at("STREAMS") or cursor.at("TABLES"):
        kind = cursor.take().value
        return ast.Describe("", kind, cursor.accept("EXTENDED"), at=cursor.since(first))
    if cursor.at("EXTENDED") and cursor.at_name(ahead=1):
        raise cursor.error("EXTENDED must follow the name", hint=f"DESCRIBE {cursor.peek(1).written} EXTENDED")
    name = cursor.name("the name of a stream or table")
    return ast.Describe(name, "", cursor.accept("EXTENDED"), at=cursor.since(first))


def _explain(cursor: Cursor) -> ast.Statement:
    first = cursor.take()
    alone = cursor.peek(1).kind is Kind.END
    if cursor.at_name() and (alone or cursor.peek().value not in STATEMENTS):
        return ast.Explain(None, cursor.name("the id of a query"), at=cursor.since(first))
    if cursor.done:
        raise cursor.expected("a statement or the id of a query")
    with cursor.deeper():
        explained = statement(cursor)
    return ast.Explain(explained, at=cursor.since(first))


def _print(cursor: Cursor) -> ast.Statement:
    first = cursor.take()
    topic = _topic(cursor)
    from_beginning = cursor.accept("FROM")
    if from_beginning:
        cursor.expect("BEGINNING")
    interval = limit = None
    if cursor.accept("INTERVAL") or cursor.accept("SAMPLE"):
        interval = cursor.integer("a whole number")
    if cursor.accept("LIMIT"):
        limit = cursor.integer("how many records, a whole number")
    return ast.Print(topic, from_beginning, interval, limit, at=cursor.since(first))


def _topic(cursor: Cursor) -> str:
    """Parse a topic name, which keeps its case, quoted or not."""
    token = cursor.peek()
    if token.kind is Kind.STRING:
        found = cursor.take().value
    else:
        name = cursor.name("the name of a topic")
        found = token.written if token.kind is Kind.WORD else name
    if cursor.at_symbol("-") or cursor.at_symbol("."):
        whole = re.match(r"[\w.-]+", cursor.source.text[token.start :])
        raise cursor.error(
            "a topic with this character in its name must be quoted",
            hint=f"write '{whole.group()}'" if whole else "",
        )
    if not found:
        raise cursor.error("the name of a topic cannot be empty", token)
    return found


def _steer(cursor: Cursor) -> ast.Statement:
    first = cursor.take()
    if cursor.at("QUERY") and cursor.at_name(ahead=1):
        cursor.take()
    query_id = "ALL" if cursor.accept("ALL") else cursor.name("the id of a query, or ALL")
    return ast.Steer(first.value, query_id, at=cursor.since(first))


def _set(cursor: Cursor) -> ast.Statement:
    first = cursor.take()
    name = cursor.string("the name of a property in quotes")
    if first.value == "UNSET":
        return ast.SetProperty(name, None, at=cursor.since(first))
    cursor.expect_symbol("=")
    token = cursor.peek()
    if token.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT):
        raise cursor.expected("a value in quotes", hint=f"write '{token.written}'")
    return ast.SetProperty(name, cursor.string("a value in quotes"), at=cursor.since(first))


def _define(cursor: Cursor) -> ast.Statement:
    first = cursor.take()
    token = cursor.peek()
    if token.kind is not Kind.WORD:
        raise cursor.expected("the name of a variable")
    if token.written[0].isdigit():
        hint = f"write _{token.written}"
        raise cursor.error(f"the name of a variable cannot start with a digit: {token.written}", token, hint=hint)
    name = cursor.take().written
    if first.value == "UNDEFINE":
        return ast.Define(name, None, at=cursor.since(first))
    cursor.expect_symbol("=")
    return ast.Define(name, cursor.string("a value in quotes"), at=cursor.since(first))


def _run(cursor: Cursor) -> ast.Statement:
    first = cursor.expect("RUN", "SCRIPT")
    return ast.RunScript(cursor.string("the path of a script in quotes"), at=cursor.since(first))


def _assert(cursor: Cursor) -> ast.Statement:
    first = cursor.take()
    exists = not cursor.at("NOT")
    if not exists:
        cursor.expect("NOT", "EXISTS")
    for word in ("SCHEMA", "STREAM", "TABLE", "VALUES", "NULL"):
        if cursor.at(word):
            raise cursor.error(f"ASSERT {word} is not supported", hint="ASSERT TOPIC is")
    cursor.expect("TOPIC")
    topic = _topic(cursor)
    given = properties(cursor) if cursor.accept("WITH") else ()
    timeout = duration(cursor) if cursor.accept("TIMEOUT") else None
    return ast.AssertTopic(topic, given, timeout, exists, at=cursor.since(first))


GRAMMARS: dict[str, Callable[[Cursor], ast.Statement]] = {
    "SELECT": _select,
    "CREATE": create,
    "ALTER": alter,
    "DROP": drop,
    "INSERT": insert,
    "SHOW": _show,
    "LIST": _show,
    "DESCRIBE": _describe,
    "EXPLAIN": _explain,
    "PRINT": _print,
    "TERMINATE": _steer,
    "PAUSE": _steer,
    "RESUME": _steer,
    "SET": _set,
    "UNSET": _set,
    "DEFINE": _define,
    "UNDEFINE": _define,
    "RUN": _run,
    "ASSERT": _assert,
}
