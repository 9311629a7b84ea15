"""Row patterns as the patterns of a topology."""

from __future__ import annotations

from dataclasses import dataclass, field

from potok.sql.errors import Refused, UnknownName, closest
from potok.sql.row_patterns.scope import Variables
from potok.sql.syntax import ast
from potok.sql.syntax.walk import walk
from potok.sql.types import quoted
from potok.topology.patterns.tree import Choice, End, Gap, Loop, Part, Permute, Repeat, Sequence, Start, Take, Tree

EXCLUDED = "-"
"""What follows the name of a variable whose rows are excluded: such a row counts like any other of the variable."""


@dataclass(slots=True)
class PatternTree:
    """The tree of a pattern, and the names of its variables by number."""

    tree: Tree
    names: list[str] = field(default_factory=list)

    def variables(self, subsets: tuple[ast.Subset, ...]) -> Variables:
        numbers: dict[str, frozenset[int]] = {}
        for number, name in enumerate(self.names):
            rendered = name.removesuffix(EXCLUDED)
            numbers[rendered] = numbers.get(rendered, frozenset()) | {number}
        for subset in subsets:
            if subset.name in numbers:
                hint = "give the subset another name"
                raise Refused(f"{quoted(subset.name)} is a variable already", hint=hint, location=subset.at)
            for name in subset.variables:
                if name not in numbers:
                    hint = closest(name, numbers) or f"the variables are {', '.join(map(quoted, numbers))}"
                    raise UnknownName(f"the pattern has no variable {quoted(name)}", hint=hint, location=subset.at)
        listed = {one.name: frozenset().union(*(numbers[name] for name in one.variables)) for one in subsets}
        return Variables({**numbers, **listed})


def tree_of(pattern: ast.RowPattern) -> PatternTree:
    found = PatternTree(Sequence(()))
    found.tree = _tree(pattern, found.names, excluded=False)
    return found


def _tree(pattern: ast.RowPattern, names: list[str], *, excluded: bool) -> Tree:
    match pattern:
        case ast.PatternVariable(name):
            known = name + EXCLUDED if excluded else name
            if known not in names:
                names.append(known)
            return Take(known)
        case ast.PatternSequence(parts):
            return Sequence(tuple(Part(Gap.STRICT, _tree(part, names, excluded=excluded)) for part in parts))
        case ast.PatternChoice(options):
            return Choice(tuple(_tree(one, names, excluded=excluded) for one in options))
        case ast.PatternPermute(options):
            return Permute(tuple(_tree(one, names, excluded=excluded) for one in options), Gap.STRICT)
        case ast.PatternExclusion(body):
            return _tree(body, names, excluded=True)
        case ast.PatternAnchor(symbol):
            return Start() if symbol == "^" else End()
        case ast.PatternRepeat(body, least, most, reluctant):
            loop = Loop.RELUCTANT if reluctant else Loop.GREEDY
            inner = _tree(body, names, excluded=excluded)
            return Repeat(inner, max(least, 1), most, Gap.STRICT, loop, optional=least == 0)


def node_of(pattern: ast.RowPattern, kind: type[ast.Node], symbol: str = "") -> ast.Node | None:
    """Return the first part of a pattern of this kind."""
    for part in walk(pattern):
        if isinstance(part, kind) and (not symbol or getattr(part, "symbol", "") == symbol):
            return part
    return None


def endless(pattern: ast.RowPattern, always: set[str]) -> ast.Node | None:
    """Return a greedy repetition without an upper bound that every row continues: it never ends on a stream."""
    for part in walk(pattern):
        if (
            isinstance(part, ast.PatternRepeat)
            and part.most is None
            and not part.reluctant
            and _every(part.body, always)
        ):
            return part
    return None


def _every(pattern: ast.RowPattern, always: set[str]) -> bool:
    """Whether every row continues a pattern."""
    match pattern:
        case ast.PatternVariable(name):
            return name in always
        case ast.PatternChoice(options):
            return any(_every(one, always) for one in options)
        case ast.PatternSequence(parts) | ast.PatternPermute(parts):
            return bool(parts) and all(_every(part, always) for part in parts)
        case ast.PatternExclusion(body) | ast.PatternRepeat(body):
            return _every(body, always)
    return False


def impossible(pattern: ast.RowPattern, never: set[str]) -> ast.Node | None:
    """Return a part without which the pattern cannot match, and which no row satisfies."""
    match pattern:
        case ast.PatternVariable(name):
            return pattern if name in never else None
        case ast.PatternChoice(options):
            found = [impossible(one, never) for one in options]
            return found[0] if all(one is not None for one in found) else None
        case ast.PatternSequence(parts) | ast.PatternPermute(parts):
            return next((one for part in parts if (one := impossible(part, never)) is not None), None)
        case ast.PatternExclusion(body):
            return impossible(body, never)
        case ast.PatternRepeat(body, least):
            return impossible(body, never) if least else None
    return None
