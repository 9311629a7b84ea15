"""Reject patterns that cannot match, never end, or would not advance after a match."""

from __future__ import annotations

from potok.sql.errors import Refused
from potok.sql.row_patterns.tree import endless, impossible, node_of
from potok.sql.syntax import ast
from potok.sql.types import quoted
from potok.topology.patterns.check import MOST_VARIABLES
from potok.topology.patterns.errors import PatternError
from potok.topology.patterns.pattern import Pattern
from potok.topology.patterns.program import ACCEPT, Program, compile_pattern
from potok.topology.patterns.tree import AfterMatch, Sequence, SkipTo, Take, Tree, firsts_of, nullable, variables_of


def check_clauses(clause: ast.MatchRecognize, *, bounded: bool) -> None:
    """Raise if clauses exclude each other. `bounded` says that no rows will follow."""
    end = node_of(clause.pattern, ast.PatternAnchor, "$")
    if end is not None and not bounded:
        hint = "a stream has no last row: leave $ out, or use a pull query, whose rows are all known"
        raise Refused("$ is only for queries that end", hint=hint, location=end.at)
    unmatched = clause.rows is ast.RowsPerMatch.UNMATCHED
    excluded = node_of(clause.pattern, ast.PatternExclusion)
    if unmatched and excluded is not None:
        hint = "write ALL ROWS PER MATCH SHOW EMPTY MATCHES, or leave {- -} out"
        message = (
            "an exclusion cannot be combined with WITH UNMATCHED ROWS: an excluded row is neither shown nor unmatched"
        )
        raise Refused(message, hint=hint, location=excluded.at)
    if clause.timeouts and clause.within_ms is None:
        hint = "add WITHIN INTERVAL '10' MINUTE behind the pattern"
        raise Refused("SHOW TIMEOUT MATCHES needs WITHIN", hint=hint, location=clause.at)
    if clause.timeouts and unmatched:
        hint = "choose one of them: a row of a match whose time was over would be shown twice"
        raise Refused("SHOW TIMEOUT MATCHES cannot be combined with WITH UNMATCHED ROWS", hint=hint, location=clause.at)


def check_pattern(
    clause: ast.MatchRecognize, pattern: Pattern, after: AfterMatch, never: set[str], always: set[str], *, bounded: bool
) -> None:
    """Raise if a pattern cannot be used. `never` and `always` are the variables whose conditions are constant."""
    if len(pattern.definitions) > MOST_VARIABLES:
        hint = "split the pattern in two queries"
        raise Refused(f"a pattern has at most {MOST_VARIABLES} variables", hint=hint, location=clause.pattern.at)
    hopeless = impossible(clause.pattern, never)
    if hopeless is not None:
        hint = "change its condition in DEFINE"
        raise Refused("the pattern cannot match: no row satisfies this variable", hint=hint, location=hopeless.at)
    try:
        program = compile_pattern(pattern)
    except PatternError as error:
        raise Refused(error.message, hint=error.hint, location=clause.pattern.at) from error
    if not _reaches_end(program):
        hint = "^ stands before everything else, and $ behind everything else"
        raise Refused("the pattern cannot match", hint=hint, location=clause.pattern.at)
    open_ended = endless(clause.pattern, always)
    if open_ended is not None and pattern.within_ms is None and not bounded:
        hint = "define a condition, make it reluctant with ?, give a largest number of times, or add WITHIN"
        message = "the pattern never ends: every row continues this repetition"
        raise Refused(message, hint=hint, location=open_ended.at)
    if clause.after is not None and _stays(pattern.tree, after):
        hint = "skip to another variable, or write AFTER MATCH SKIP TO NEXT ROW"
        message = f"{quoted(after.variable)} is the first row of a match, so the next one would be the same"
        raise Refused(message, hint=hint, location=clause.after.at)


def _reaches_end(program: Program) -> bool:
    seen: set[int] = set()
    ahead = [*program.begin, *program.begin_first]
    while ahead:
        state = ahead.pop()
        if state == ACCEPT or program.states[state].ends:
            return True
        if state not in seen:
            seen.add(state)
            ahead += program.states[state].after
    return False


def _stays(tree: Tree, after: AfterMatch) -> bool:
    """Whether skipping after a match always leads to its first row."""
    names = set(after.names)
    if not names or nullable(tree) or not set(firsts_of(tree)) <= names:
        return False
    if after.skip is SkipTo.FIRST:
        return True
    first, rest = (tree.parts[0].node, tree.parts[1:]) if isinstance(tree, Sequence) else (tree, ())
    return isinstance(first, Take) and not any(names & set(variables_of(part.node)) for part in rest)
