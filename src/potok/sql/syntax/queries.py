"""Parse SELECT."""

from __future__ import annotations

from potok.sql.syntax import ast
from potok.sql.syntax.expressions import expression, primary, value
from potok.sql.syntax.lexer.cursor import Cursor
from potok.sql.syntax.lexer.tokens import Kind
from potok.sql.syntax.lexer.words import CLAUSE_PAIRS, CLAUSES, RESERVED
from potok.sql.syntax.lists import order_list, several
from potok.sql.syntax.row_patterns import at_match, match_recognize
from potok.sql.syntax.windows import window, within

FOREIGN = (
    ("CROSS", "JOIN"),
    ("NATURAL", "JOIN"),
    *((word, after) for word in ("UNION", "INTERSECT", "EXCEPT") for after in ("SELECT", "ALL", "DISTINCT")),
)
"""Words that follow FROM in other dialects; they are not names of relations."""


def query(cursor: Cursor) -> ast.Select:
    first = cursor.expect("SELECT")
    items = _items(cursor)
    cursor.expect("FROM")
    relation = _relation(cursor)
    joins = _joins(cursor)
    windowed = window(cursor) if cursor.accept("WINDOW") else None
    where = expression(cursor) if cursor.accept("WHERE") else None
    group_by = several(cursor) if cursor.accept("GROUP") else ()
    partition_by = several(cursor) if cursor.accept("PARTITION") else ()
    having = expression(cursor) if cursor.accept("HAVING") else None
    order_by = order_list(cursor) if cursor.accept("ORDER") else ()
    emit = ast.Emit[cursor.one_of("CHANGES", "FINAL")] if cursor.accept("EMIT") else None
    limit = cursor.integer("how many rows, a whole number") if cursor.accept("LIMIT") else None
    _nothing_late(cursor)
    return ast.Select(
        items,
        relation,
        joins,
        windowed,
        where,
        group_by,
        partition_by,
        having,
        order_by,
        limit,
        emit,
        at=cursor.since(first),
    )


def _items(cursor: Cursor) -> tuple[ast.SelectItem | ast.Everything | ast.EveryField, ...]:
    if cursor.at("DISTINCT"):
        raise cursor.error("SELECT DISTINCT is not supported", hint="group by the columns: GROUP BY a, b")
    fields = cursor.holds("->", "*")
    items = [_item(cursor, fields)]
    while cursor.another(items):
        if cursor.at("FROM"):
            raise cursor.error("a column is missing between the comma and FROM", hint="remove the comma")
        items.append(_item(cursor, fields))
    return tuple(items)


def _item(cursor: Cursor, fields: bool) -> ast.SelectItem | ast.Everything | ast.EveryField:
    first = cursor.peek()
    if cursor.accept_symbol("*"):
        return ast.Everything(at=cursor.since(first))
    if cursor.at_name() and cursor.at_symbol(".", 1) and cursor.at_symbol("*", 2):
        source = cursor.name("the name of a stream or table")
        cursor.take()
        cursor.take()
        return ast.Everything(source, at=cursor.since(first))
    every = _every_field(cursor) if fields else None
    if every is not None:
        return every
    found = expression(cursor)
    alias = ""
    if cursor.accept("AS") or cursor.at_name():
        alias = cursor.name("a name for the column")
    elif cursor.at_symbol("->"):
        raise cursor.error("->* must follow a single struct", hint="put the expression before it in parentheses")
    return ast.SelectItem(found, alias, at=cursor.since(first))


def _every_field(cursor: Cursor) -> ast.EveryField | None:
    """Parse `x->*`. The arrow and star are searched for first, so that nothing is parsed twice without them."""
    first, mark = cursor.peek(), cursor.mark()
    ahead, depth = 0, 0
    while cursor.peek(ahead).kind is not Kind.END and not (depth == 0 and cursor.at_symbol(",", ahead)):
        depth += cursor.peek(ahead).value in ("(", "[") and cursor.peek(ahead).kind is Kind.SYMBOL
        depth -= cursor.peek(ahead).value in (")", "]") and cursor.peek(ahead).kind is Kind.SYMBOL
        if depth == 0 and cursor.at_symbol("->", ahead) and cursor.at_symbol("*", ahead + 1):
            break
        clause = cursor.at("FROM", ahead=ahead) and not (ahead and cursor.at("DISTINCT", ahead=ahead - 1))
        if depth < 0 or (depth == 0 and clause):
            return None
        ahead += 1
    else:
        return None
    operand = primary(cursor)
    if not cursor.accept_symbol("->"):
        cursor.rewind(mark)
        return None
    cursor.take()
    return ast.EveryField(operand, at=cursor.since(first))


def _relation(cursor: Cursor) -> ast.Relation:
    first = cursor.peek()
    if cursor.at_symbol("("):
        raise cursor.error(
            "a query is not allowed in FROM", hint="CREATE STREAM or TABLE ... AS SELECT first, then select from that"
        )
    name = cursor.name("the name of a stream or table")
    if cursor.at_symbol("."):
        raise cursor.error(
            "streams and tables have no schema before their name", hint=f"write {cursor.peek(1).written}"
        )
    as_of = _as_of(cursor)
    alias = _alias(cursor)
    if as_of is None:
        as_of = _as_of(cursor)
    at = cursor.since(first)
    if not at_match(cursor):
        return ast.Relation(name, alias, as_of, at=at)
    found = match_recognize(cursor)
    return ast.Relation(name, _alias(cursor), as_of, found, alias, at=at)


def _as_of(cursor: Cursor) -> ast.Expression | None:
    """Parse `AS OF <time>`; `AS of` without a time after it is the alias OF."""
    if not cursor.at("AS", "OF"):
        return None
    after = cursor.peek(2)
    sign = after.kind is Kind.SYMBOL and after.value in ("(", "-", "+")
    word = after.kind is Kind.WORD and (after.value not in RESERVED or after.value in ("CAST", "CASE"))
    if not (sign or word or after.kind not in (Kind.SYMBOL, Kind.WORD, Kind.END)) or _at_pair(cursor, 2):
        return None
    cursor.take()
    cursor.take()
    return value(cursor)


def _alias(cursor: Cursor) -> str:
    if cursor.at("AS", "OF") and _at_time(cursor):
        return ""
    if cursor.accept("AS"):
        return cursor.name("another name for the stream or table")
    if cursor.at_name() and not _at_clause(cursor):
        return cursor.name("another name for the stream or table")
    return ""


def _at_clause(cursor: Cursor) -> bool:
    """Return whether a word that may be a name starts the next clause; EMIT does even if it is misspelled."""
    emit = cursor.at("EMIT") and cursor.peek(1).kind is Kind.WORD and cursor.at_name(1) and not _at_pair(cursor, 1)
    other = any(cursor.at(*words) for words in FOREIGN)
    return emit or other or at_match(cursor) or _at_pair(cursor)


def _at_time(cursor: Cursor) -> bool:
    mark = cursor.mark()
    found = _as_of(cursor) is not None
    cursor.rewind(mark)
    return found


def _at_pair(cursor: Cursor, ahead: int = 0) -> bool:
    return any(cursor.at(*pair, ahead=ahead) for pair in CLAUSE_PAIRS)


def _joins(cursor: Cursor) -> tuple[ast.Join, ...]:
    joins: list[ast.Join] = []
    if cursor.at_symbol(","):
        raise cursor.error("FROM takes one stream or table", hint="join the others: FROM a JOIN b ON a.id = b.id")
    while True:
        first = cursor.peek()
        kind = _join_kind(cursor)
        if kind is None:
            return tuple(joins)
        relation = _relation(cursor)
        apart = within(cursor) if cursor.accept("WITHIN") else None
        if not cursor.accept("ON"):
            raise cursor.expected("ON and a condition", near=("ON", "WITHIN"))
        condition = expression(cursor)
        if cursor.at("WITHIN"):
            raise cursor.error("WITHIN must come before ON", hint="JOIN b WITHIN 1 HOUR ON a.id = b.id")
        joins.append(ast.Join(kind, relation, condition, apart, at=cursor.since(first)))


def _join_kind(cursor: Cursor) -> ast.JoinKind | None:
    if any(cursor.at(*words) for words in FOREIGN[:2]):
        raise cursor.error("only INNER, LEFT, RIGHT and FULL joins are supported")
    if cursor.accept("JOIN"):
        return ast.JoinKind.INNER
    for kind in ast.JoinKind:
        if cursor.accept(kind.value):
            if kind is not ast.JoinKind.INNER:
                cursor.accept("OUTER")
            cursor.expect("JOIN")
            return kind
    return None


def _nothing_late(cursor: Cursor) -> None:
    """Raise if a clause comes after one that it must precede."""
    for clause in CLAUSES:
        if cursor.at(*clause.split()):
            order = ", ".join(CLAUSES)
            raise cursor.error(f"{clause} is out of order or repeated", hint=f"the order is {order}")
    for words in FOREIGN[2:]:
        if cursor.at(*words):
            raise cursor.error(f"{words[0]} is not supported", hint="INSERT INTO ... SELECT adds a second query")
