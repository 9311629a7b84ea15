"""Format MATCH_RECOGNIZE as SQL; parsing the text returns the same clause."""

from __future__ import annotations

from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import listed, show
from potok.sql.syntax.lexer.words import UNIT_MS, quoted


def show_match(match: ast.MatchRecognize) -> str:
    parts = [
        match.partition_by and f"PARTITION BY {listed(match.partition_by)}",
        match.order_by and f"ORDER BY {', '.join(map(show_order, match.order_by))}",
        match.grace_ms is not None and f"GRACE PERIOD {show_duration(match.grace_ms)}",
        match.measures
        and f"MEASURES {', '.join(f'{show(one.expression)} AS {quoted(one.name)}' for one in match.measures)}",
        match.rows.value,
        match.timeouts and "SHOW TIMEOUT MATCHES",
        match.after is not None and f"AFTER MATCH SKIP {_after(match.after)}",
        f"PATTERN ({show_pattern(match.pattern)})",
        match.within_ms is not None and f"WITHIN {show_duration(match.within_ms)}",
        match.subsets and f"SUBSET {', '.join(map(_subset, match.subsets))}",
        match.definitions and f"DEFINE {', '.join(map(_definition, match.definitions))}",
    ]
    return f"MATCH_RECOGNIZE ({' '.join(str(part) for part in parts if part)})"


def show_pattern(pattern: ast.RowPattern) -> str:
    """A row pattern as SQL."""
    match pattern:
        case ast.PatternVariable(name):
            return quoted(name)
        case ast.PatternSequence(parts):
            return " ".join(_part(part) for part in parts) if parts else "()"
        case ast.PatternChoice(options):
            return " | ".join(
                f"({show_pattern(one)})" if isinstance(one, ast.PatternChoice) else show_pattern(one) for one in options
            )
        case ast.PatternPermute(options):
            return f"PERMUTE({', '.join(map(show_pattern, options))})"
        case ast.PatternExclusion(body):
            return f"{{- {show_pattern(body)} -}}"
        case ast.PatternAnchor(symbol):
            return symbol
        case ast.PatternRepeat(body, least, most, reluctant):
            inner = show_pattern(body)
            if isinstance(body, ast.PatternChoice | ast.PatternRepeat) or (
                isinstance(body, ast.PatternSequence) and body.parts
            ):
                inner = f"({inner})"
            return f"{inner}{_quantifier(least, most)}{'?' if reluctant else ''}"


def _part(part: ast.RowPattern) -> str:
    text = show_pattern(part)
    enclosed = isinstance(part, ast.PatternChoice) or (isinstance(part, ast.PatternSequence) and part.parts)
    return f"({text})" if enclosed else text


def _quantifier(least: int, most: int | None) -> str:
    simple = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if simple is not None:
        return simple
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


def _after(after: ast.SkipAfterMatch) -> str:
    return f"{after.where} {quoted(after.variable)}" if after.variable else after.where


def _subset(subset: ast.Subset) -> str:
    return f"{quoted(subset.name)} = ({', '.join(map(quoted, subset.variables))})"


def _definition(definition: ast.VariableDefinition) -> str:
    return f"{quoted(definition.name)} AS {show(definition.condition)}"


def show_order(item: ast.OrderItem) -> str:
    nulls = "" if item.nulls_first is None else f"NULLS {'FIRST' if item.nulls_first else 'LAST'}"
    return " ".join(filter(None, (show(item.expression), "DESC" if item.descending else "", nulls)))


def show_duration(ms: int) -> str:
    """The largest unit that is exact: `90 MINUTES`.

    >>> show_duration(5_400_000), show_duration(86_400_000)
    ('90 MINUTES', '1 DAY')
    """
    unit = next(unit for unit in reversed(UNIT_MS) if ms % UNIT_MS[unit] == 0)
    number = ms // UNIT_MS[unit]
    return f"{number} {unit if number == 1 else f'{unit}S'}"
