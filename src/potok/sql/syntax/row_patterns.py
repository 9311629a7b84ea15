"""Parse MATCH_RECOGNIZE and its row patterns."""

from __future__ import annotations

from potok.sql.errors import SqlSyntaxError
from potok.sql.syntax import ast
from potok.sql.syntax.expressions import expression
from potok.sql.syntax.lexer.cursor import Cursor
from potok.sql.syntax.lexer.tokens import Kind, Token
from potok.sql.syntax.lists import order_list, several
from potok.sql.syntax.windows import duration, interval

MATCH_RECOGNIZE = "MATCH_RECOGNIZE"
ORDER = (
    "PARTITION BY, ORDER BY, MEASURES, ONE ROW or ALL ROWS PER MATCH, AFTER MATCH SKIP, PATTERN, WITHIN, SUBSET, DEFINE"
)
_SIMPLE: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_QUANTIFIERS = (*_SIMPLE, "{")
_SKIP_HINT = "write PAST LAST ROW, TO NEXT ROW, TO FIRST a, TO LAST a or TO a"
MOST_PERMUTED = 6
MOST_TIMES = 1_000
"""A larger number of repetitions has more states than the machine of a pattern can have."""


def at_match(cursor: Cursor) -> bool:
    return cursor.at(MATCH_RECOGNIZE) and cursor.at_symbol("(", 1)


def match_recognize(cursor: Cursor) -> ast.MatchRecognize:
    first = cursor.expect(MATCH_RECOGNIZE)
    opening = cursor.expect_symbol("(")
    partition_by = several(cursor) if cursor.accept("PARTITION") else ()
    order_by = order_list(cursor) if cursor.accept("ORDER") else ()
    grace = duration(cursor) if cursor.accept("GRACE", "PERIOD") else None
    measures = _measures(cursor) if cursor.accept("MEASURES") else ()
    rows, timeouts = _rows_per_match(cursor)
    after = _after(cursor) if cursor.at("AFTER") else None
    if not cursor.accept("PATTERN"):
        raise cursor.expected("PATTERN", near=("PATTERN",), hint=f"the order is {ORDER}")
    inner = cursor.expect_symbol("(", hint="write PATTERN (a b+)")
    pattern = _choice(cursor)
    cursor.close(inner, ")")
    within = interval(cursor) if cursor.accept("WITHIN") else None
    subsets = _subsets(cursor) if cursor.accept("SUBSET") else ()
    definitions = _definitions(cursor) if cursor.accept("DEFINE") else ()
    if not cursor.at_symbol(")"):
        raise _late(cursor, opening)
    cursor.take()
    return ast.MatchRecognize(
        partition_by,
        order_by,
        grace,
        measures,
        rows,
        timeouts,
        after,
        pattern,
        within,
        subsets,
        definitions,
        at=cursor.since(first),
    )


def _late(cursor: Cursor, opening: Token) -> SqlSyntaxError:
    clauses = ("PARTITION", "ORDER", "MEASURES", "ONE", "ALL", "AFTER", "PATTERN", "WITHIN", "SUBSET", "DEFINE")
    for word in clauses:
        if cursor.at(word):
            return cursor.error(f"{word} is out of order or repeated", hint=f"the order is {ORDER}")
    location = cursor.source.location(opening.start, opening.end)
    hint = f"it closes the ( at line {location.line}, column {location.column}"
    return cursor.expected("a comma or )", hint=hint)


def _measures(cursor: Cursor) -> tuple[ast.Measure, ...]:
    found = [_measure(cursor)]
    while cursor.another(found):
        found.append(_measure(cursor))
    return tuple(found)


def _measure(cursor: Cursor) -> ast.Measure:
    first = cursor.peek()
    made = expression(cursor)
    cursor.expect("AS")
    return ast.Measure(made, cursor.name("a name for the measure"), at=cursor.since(first))


def _rows_per_match(cursor: Cursor) -> tuple[ast.RowsPerMatch, bool]:
    rows = ast.RowsPerMatch.ONE
    if cursor.accept("ALL"):
        cursor.expect("ROWS", "PER", "MATCH")
        rows = ast.RowsPerMatch.SHOW_EMPTY
        if cursor.accept("OMIT"):
            cursor.expect("EMPTY", "MATCHES")
            rows = ast.RowsPerMatch.OMIT_EMPTY
        elif cursor.accept("WITH"):
            cursor.expect("UNMATCHED", "ROWS")
            rows = ast.RowsPerMatch.UNMATCHED
        elif cursor.at("SHOW", "EMPTY"):
            cursor.take()
            cursor.expect("EMPTY", "MATCHES")
    elif cursor.accept("ONE"):
        cursor.expect("ROW", "PER", "MATCH")
    timeouts = cursor.accept("SHOW")
    if timeouts:
        cursor.expect("TIMEOUT", "MATCHES")
    return rows, timeouts


def _after(cursor: Cursor) -> ast.SkipAfterMatch:
    first = cursor.expect("AFTER", "MATCH", "SKIP")
    if cursor.accept("PAST"):
        cursor.expect("LAST", "ROW")
        return ast.SkipAfterMatch("PAST LAST ROW", at=cursor.since(first))
    if not cursor.accept("TO"):
        raise cursor.expected("PAST or TO", hint=_SKIP_HINT)
    if cursor.accept("NEXT", "ROW"):
        return ast.SkipAfterMatch("TO NEXT ROW", at=cursor.since(first))
    where = "TO LAST"
    if cursor.at_name(1) and (cursor.at("FIRST") or cursor.at("LAST")) and not cursor.at("PATTERN", ahead=1):
        where = f"TO {cursor.take().value}"
    token = cursor.peek()
    variable = cursor.name("the variable of a pattern")
    return ast.SkipAfterMatch(where, variable, at=cursor.source.location(token.start, token.end))


def _subsets(cursor: Cursor) -> tuple[ast.Subset, ...]:
    found = [_subset(cursor)]
    while cursor.another(found):
        found.append(_subset(cursor))
    return tuple(found)


def _subset(cursor: Cursor) -> ast.Subset:
    first = cursor.peek()
    name = cursor.name("the name of a subset")
    cursor.expect_symbol("=", hint="write SUBSET s = (a, b)")
    opening = cursor.expect_symbol("(", hint="write SUBSET s = (a, b)")
    variables = [cursor.name("the variable of a pattern")]
    while cursor.another(variables):
        variables.append(cursor.name("the variable of a pattern"))
    cursor.close(opening, ")")
    return ast.Subset(name, tuple(variables), at=cursor.since(first))


def _definitions(cursor: Cursor) -> tuple[ast.VariableDefinition, ...]:
    found = [_definition(cursor)]
    while cursor.another(found):
        found.append(_definition(cursor))
    return tuple(found)


def _definition(cursor: Cursor) -> ast.VariableDefinition:
    token = cursor.peek()
    name = cursor.name("the variable of a pattern")
    at = cursor.since(token)
    cursor.expect("AS")
    return ast.VariableDefinition(name, expression(cursor), at=at)


def _choice(cursor: Cursor) -> ast.RowPattern:
    first = cursor.peek()
    with cursor.deeper():
        options = [_sequence(cursor)]
        while cursor.accept_symbol("|"):
            options.append(_sequence(cursor))
        if cursor.at_symbol("||"):
            raise cursor.error("|| is for text", hint="write a | b for one of two, or a | () | b")
    return options[0] if len(options) == 1 else ast.PatternChoice(tuple(options), at=cursor.since(first))


def _sequence(cursor: Cursor) -> ast.RowPattern:
    first = cursor.peek()
    parts = [_quantified(cursor)]
    while not cursor.done and not any(cursor.at_symbol(end) for end in ("|", "||", ")", ",", "-}")):
        parts.append(_quantified(cursor))
    return parts[0] if len(parts) == 1 else ast.PatternSequence(tuple(parts), at=cursor.since(first))


def _quantified(cursor: Cursor) -> ast.RowPattern:
    first = cursor.peek()
    part = _primary(cursor)
    token = cursor.peek()
    if not any(map(cursor.at_symbol, _QUANTIFIERS)):
        return part
    if isinstance(part, ast.PatternAnchor):
        raise cursor.error(f"{part.symbol} cannot be repeated", hint=f"remove the {token.written}")
    cursor.take()
    least, most = _SIMPLE[token.value] if token.value in _SIMPLE else _bounds(cursor, token)
    reluctant = cursor.accept_symbol("?")
    if any(map(cursor.at_symbol, _QUANTIFIERS)):
        raise cursor.error("a quantifier cannot follow another", hint="put the first one in parentheses: (a+){2}")
    return ast.PatternRepeat(part, least, most, reluctant, at=cursor.since(first))


def _bounds(cursor: Cursor, opening: Token) -> tuple[int, int | None]:
    hint = "write {2}, {2,}, {2,4} or {,4}"
    low = cursor.integer("a number") if cursor.peek().kind is Kind.INTEGER else None
    comma = cursor.accept_symbol(",")
    high = cursor.integer("a number") if comma and cursor.peek().kind is Kind.INTEGER else None
    if low is None and not comma:
        raise cursor.expected("a number", hint=hint)
    cursor.expect_symbol("}", hint=hint)
    most = high if comma else low
    if most is not None and (most == 0 or most < (low or 0)):
        raise cursor.error("this number of times cannot match", opening, hint=hint)
    if max(low or 0, most or 0) > MOST_TIMES:
        limit = f"a number of times is at most {MOST_TIMES:,}"
        raise cursor.error(limit, opening, hint="count in a condition: DEFINE a AS COUNT(a.*) <= 5000")
    return low or 0, most


def _primary(cursor: Cursor) -> ast.RowPattern:
    first = cursor.peek()
    if cursor.at_symbol("^") or cursor.at_symbol("$"):
        return ast.PatternAnchor(cursor.take().value, at=cursor.since(first))
    if cursor.accept_symbol("{-"):
        inner = _choice(cursor)
        cursor.expect_symbol("-}", hint="an exclusion is written {- a -}")
        return ast.PatternExclusion(inner, at=cursor.since(first))
    if cursor.accept_symbol("("):
        if cursor.accept_symbol(")"):
            return ast.PatternSequence((), at=cursor.since(first))
        found = _choice(cursor)
        cursor.close(first, ")")
        return found
    if cursor.at("PERMUTE") and cursor.at_symbol("(", 1):
        return _permute(cursor)
    if not cursor.at_name():
        raise cursor.expected("a variable, ( or {-", hint="write PATTERN (a b+ (c | d)?)")
    name = cursor.name("a variable")
    return ast.PatternVariable(name, at=cursor.since(first))


def _permute(cursor: Cursor) -> ast.RowPattern:
    first = cursor.take()
    opening = cursor.expect_symbol("(")
    options = [_choice(cursor)]
    while cursor.accept_symbol(","):
        options.append(_choice(cursor))
    cursor.close(opening, ")")
    if not 2 <= len(options) <= MOST_PERMUTED:
        raise cursor.error(f"PERMUTE takes two to {MOST_PERMUTED} patterns", first, hint="write PERMUTE(a, b, c)")
    return ast.PatternPermute(tuple(options), at=cursor.since(first))
