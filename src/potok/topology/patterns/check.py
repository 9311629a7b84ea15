"""Refuse patterns that cannot match or would keep records forever, and find those that can stay open."""

from __future__ import annotations

from potok.errors import Location
from potok.topology.patterns.errors import PatternError, UnknownVariable
from potok.topology.patterns.pattern import Pattern
from potok.topology.patterns.tree import (
    Absent,
    AfterMatch,
    Choice,
    Gap,
    Permute,
    Repeat,
    Sequence,
    SkipTo,
    Spaced,
    Take,
    Tree,
    nullable,
    variables_of,
)

MOST_VARIABLES = 60

_VERBS = "no_skip, skip_to_next, skip_past_last, skip_to_first(x) or skip_to_last(x)"


def after_match(text: str, pattern: Pattern, at: Location | None) -> AfterMatch:
    """Parse the `after=` of a match."""
    verb, _, rest = text.partition("(")
    try:
        skip = SkipTo(verb.strip())
    except ValueError:
        raise PatternError(f'after="{text}" is not known', hint=f"write {_VERBS}", at=at) from None
    variable = rest.removesuffix(")").strip()
    if (skip in (SkipTo.FIRST, SkipTo.LAST)) != bool(variable):
        raise PatternError(f'after="{text}" is not complete', hint=f"write {_VERBS}", at=at)
    if variable and variable not in variables_of(pattern.tree):
        raise UnknownVariable(variable, variables_of(pattern.tree), f'after="{text}"')
    return AfterMatch(skip, variable)


def check(pattern: Pattern, at: Location | None, *, empty: bool = False) -> None:
    """Raise the first error found. With `empty`, a pattern may match without any record."""
    tree = pattern.tree
    if len(pattern.definitions) > MOST_VARIABLES:
        raise PatternError(f"a pattern can have at most {MOST_VARIABLES} conditions", hint="split it in two", at=at)
    _check_absence(tree, at, first=True, last=True)
    if nullable(tree) and not empty:
        raise PatternError("the pattern matches without any record", hint="make at least one part not optional", at=at)
    if ends_absent(tree) and _silence_of(tree) is None and pattern.within_ms is None:
        raise PatternError(
            "a pattern that ends with not_followed_by() never ends without a time limit",
            hint='add .within("10 min")',
            at=at,
        )
    if pattern.within_ms is None and (loop := _endless(tree)) is not None:
        raise PatternError(
            f'the pattern is unbounded: a match could collect "{"".join(variables_of(loop))}" records forever',
            hint='add .within("10 min"), .until(...) or .consecutive(), or a largest number of times',
            at=at,
        )


def ends_absent(tree: Tree) -> bool:
    """Whether the last part of a pattern is an absence that lasts."""
    return isinstance(tree, Sequence) and isinstance(last := tree.parts[-1].node, Absent) and not last.immediately


def _silence_of(tree: Tree) -> int | None:
    """Return how long an absence at the end lasts after the record before."""
    last = tree.parts[-1].node if isinstance(tree, Sequence) else tree
    return last.within_ms if isinstance(last, Absent) else None


def stays_open(pattern: Pattern) -> bool:
    """Whether a match can stay open forever, if the record that it waits for never comes."""
    return pattern.within_ms is None and _skips(pattern.tree)


def _skips(tree: Tree) -> bool:
    match tree:
        case Sequence(parts):
            waits = (part.gap is not Gap.STRICT for part in parts[1:] if not isinstance(part.node, Absent | Spaced))
            return any(waits) or any(_skips(part.node) for part in parts)
        case Choice(options):
            return any(map(_skips, options))
        case Permute(options, gap):
            return gap is not Gap.STRICT or any(map(_skips, options))
        case Repeat():
            return (tree.gap is not Gap.STRICT and tree.most != 1 and tree.gap_ms is None) or _skips(tree.body)
    return False


def _endless(tree: Tree) -> Repeat | None:
    """Return a repetition that neither a bound, nor a condition, nor another record ends."""
    match tree:
        case Sequence(parts):
            inner = [part.node for part in parts]
        case Choice(options) | Permute(options, _):
            inner = list(options)
        case Repeat():
            if tree.most is None and tree.gap is not Gap.STRICT and not tree.until and tree.gap_ms is None:
                return tree
            inner = [tree.body]
        case _:
            inner = []
    return next((found for node in inner if (found := _endless(node)) is not None), None)


def check_possible(pattern: Pattern, never: frozenset[str], at: Location | None) -> None:
    """Raise if a match needs a record of one of these variables, which no record satisfies."""
    found = _impossible(pattern.tree, never)
    if found is not None:
        hint = f'change the condition of "{found}", which is never true'
        raise PatternError("the pattern cannot match", hint=hint, at=at)


def _impossible(tree: Tree, never: frozenset[str]) -> str | None:
    match tree:
        case Take(variable):
            return variable if variable in never else None
        case Sequence(parts):
            return next((found for part in parts if (found := _impossible(part.node, never)) is not None), None)
        case Choice(options):
            all_found = [_impossible(option, never) for option in options]
            return None if None in all_found else all_found[0]
        case Permute(options, _):
            return next((found for option in options if (found := _impossible(option, never)) is not None), None)
        case Repeat() | Spaced():
            return None if isinstance(tree, Repeat) and tree.optional else _impossible(tree.body, never)
    return None


def _check_absence(tree: Tree, at: Location | None, *, first: bool, last: bool) -> None:
    """Allow an absence only between two parts, or at the very end."""
    match tree:
        case Absent():
            raise PatternError("an absence alone cannot match", hint="begin with an event that is there", at=at)
        case Sequence(parts):
            if isinstance(parts[0].node, Absent):
                hint = "begin with an event that is there"
                raise PatternError("a pattern or group cannot begin with an absence", hint=hint, at=at)
            if isinstance(parts[-1].node, Absent) and not (first and last):
                hint = "put the absence behind the group"
                raise PatternError("a group cannot end with an absence", hint=hint, at=at)
            for part in parts:
                if not isinstance(part.node, Absent):
                    _check_absence(part.node, at, first=False, last=False)
        case Choice(options) | Permute(options, _):
            for option in options:
                _check_absence(option, at, first=False, last=False)
        case Repeat() | Spaced():
            _check_absence(tree.body, at, first=False, last=False)
