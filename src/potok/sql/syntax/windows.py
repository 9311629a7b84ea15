"""Parse durations, WINDOW and WITHIN."""

from __future__ import annotations

from potok.sql.syntax import ast
from potok.sql.syntax.lexer.cursor import Cursor, either
from potok.sql.syntax.lexer.tokens import Kind
from potok.sql.syntax.lexer.words import UNIT_MS, UNITS

MAX_MS = (1 << 63) - 1


def duration(cursor: Cursor, *, zero: bool = True) -> int:
    """Parse a duration such as `5 MINUTES` to milliseconds."""
    token = cursor.peek()
    if token.kind is not Kind.INTEGER:
        together = token.kind is Kind.WORD and token.value[0].isdigit()
        hint = "write a space between the number and its unit" if together else ""
        raise cursor.expected("a duration such as 5 MINUTES", hint=hint)
    number = cursor.integer("a whole number")
    unit = cursor.peek()
    if unit.kind is not Kind.WORD or unit.value not in UNITS:
        names = tuple(name for name in UNITS if name.endswith("S"))
        raise cursor.expected(either(names), near=tuple(UNITS))
    cursor.take()
    if not number and not zero:
        raise cursor.error("this duration must be positive", token)
    if number * UNITS[unit.value] > MAX_MS:
        raise cursor.error("this duration is too long", token)
    return number * UNITS[unit.value]


def interval(cursor: Cursor) -> int:
    """Parse `INTERVAL '10' MINUTE`, or a duration, to milliseconds; it is positive."""
    first = cursor.peek()
    if not cursor.at("INTERVAL"):
        return duration(cursor, zero=False)
    cursor.take()
    token = cursor.peek()
    text = cursor.string("a whole number in quotes").strip()
    unit = cursor.peek()
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise cursor.error(f"'{text}' is not a whole number", token, hint="write INTERVAL '10' MINUTE")
    if unit.kind is not Kind.WORD or unit.value not in UNITS:
        raise cursor.expected(either(tuple(UNIT_MS)), near=tuple(UNITS))
    cursor.take()
    found = int(text) * UNITS[unit.value]
    if not 0 < found <= MAX_MS:
        location = "positive" if not found else "shorter"
        raise cursor.error(f"this interval must be {location}", first, hint="write INTERVAL '10' MINUTE")
    return found


def window(cursor: Cursor) -> ast.WindowClause:
    """Parse what follows WINDOW. A name before the type is allowed and ignored, as in ksqlDB."""
    kinds = ("TUMBLING", "HOPPING", "SESSION")
    first = cursor.previous or cursor.peek()
    if cursor.at_name() and any(cursor.at(kind, ahead=1) for kind in kinds):
        cursor.take()
    kind = cursor.one_of(*kinds)
    cursor.expect_symbol("(", hint=f"write {_example(kind)}")
    if kind != "SESSION":
        cursor.expect("SIZE")
    size = duration(cursor, zero=False)
    advance = None
    if kind == "HOPPING":
        cursor.expect_symbol(",", hint=f"write {_example(kind)}")
        cursor.expect("ADVANCE", "BY")
        advance = duration(cursor, zero=False)
    retention, grace = _limits(cursor)
    cursor.expect_symbol(")")
    return ast.WindowClause(kind, size, advance, retention, grace, at=cursor.since(first))


def _limits(cursor: Cursor) -> tuple[int | None, int | None]:
    retention: int | None = None
    grace: int | None = None
    while cursor.accept_symbol(","):
        token = cursor.peek()
        if cursor.accept("RETENTION"):
            twice, retention = retention is not None, duration(cursor, zero=False)
        elif cursor.accept("GRACE"):
            cursor.expect("PERIOD")
            twice, grace = grace is not None, duration(cursor)
        else:
            raise cursor.expected("RETENTION or GRACE PERIOD", near=("RETENTION", "GRACE"))
        if twice:
            raise cursor.error(f"{token.value} is given twice", token)
    return retention, grace


def within(cursor: Cursor) -> ast.Within:
    """Parse what follows WITHIN: `1 HOUR`, or `(1 HOUR, 2 HOURS)` before and after, then an optional grace period."""
    first = cursor.previous or cursor.peek()
    grace = None
    if cursor.accept_symbol("("):
        before = duration(cursor)
        after = before
        if cursor.at_symbol(",") and not cursor.at("GRACE", ahead=1):
            cursor.take()
            after = duration(cursor)
        if cursor.accept_symbol(","):
            cursor.expect("GRACE", "PERIOD")
            grace = duration(cursor)
        cursor.expect_symbol(")")
    else:
        before = after = duration(cursor)
    if grace is None and cursor.accept("GRACE"):
        cursor.expect("PERIOD")
        grace = duration(cursor)
    return ast.Within(before, after, grace, at=cursor.since(first))


def _example(kind: str) -> str:
    return {
        "TUMBLING": "WINDOW TUMBLING (SIZE 1 HOUR)",
        "HOPPING": "WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 10 MINUTES)",
        "SESSION": "WINDOW SESSION (30 MINUTES)",
    }[kind]
