"""A pattern and the verbs that extend it: those of Flink CEP, with its defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from potok.duration import Duration, to_ms
from potok.expressions.function import Function
from potok.topology.patterns.errors import PatternError
from potok.topology.patterns.tree import (
    Absent,
    Choice,
    Definition,
    Gap,
    Loop,
    Part,
    Permute,
    Repeat,
    Semantics,
    Sequence,
    Spaced,
    Take,
    Tree,
    show,
    spaced,
    with_names,
)

CONDITION = "write lambda e: ... or, with the match so far, lambda e, m: ..."


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """A pattern over the records of one key, in event-time order. Each verb returns another pattern."""

    tree: Tree
    definitions: tuple[Definition, ...]
    within_ms: int | None = None
    semantics: Semantics = Semantics.FIRST
    grouped: bool = True
    """Whether quantifiers apply to the whole; if not, the pattern is a sequence that is being written."""
    text: str = ""
    """How it was written, if not with verbs."""

    def next(self, other: Pattern) -> Pattern:
        """Continue with the very next record."""
        return self._then(Gap.STRICT, other)

    def followed_by(self, other: Pattern) -> Pattern:
        """Continue with the next record that fits; others in between are skipped."""
        return self._then(Gap.RELAXED, other)

    def followed_by_any(self, other: Pattern) -> Pattern:
        """Continue with any later record that fits, also after others that fit."""
        return self._then(Gap.ANY, other)

    def not_next(self, other: Pattern) -> Pattern:
        """Require that the very next record is not this one."""
        return self._without(other, immediately=True)

    def not_followed_by(self, other: Pattern) -> Pattern:
        """Require that no such record occurs before the next part; at the end of a pattern, until `within` is over."""
        return self._without(other, immediately=False)

    def one_or_more(self, *, within: Duration | None = None) -> Pattern:
        """Repeat, each time less than `within` after the time before."""
        return self._repeat(1, None, within)

    def times(self, least: int, most: int | None = None, *, within: Duration | None = None) -> Pattern:
        """Repeat a number of times, or between two numbers of times; each less than `within` after the one before."""
        return self._repeat(least, least if most is None else most, within)

    def times_or_more(self, least: int, *, within: Duration | None = None) -> Pattern:
        return self._repeat(least, None, within)

    def optional(self) -> Pattern:
        """Allow that this is missing."""
        tree = self._whole("optional")
        made = replace(tree, optional=True) if isinstance(tree, Repeat) else Repeat(tree, 1, 1, optional=True)
        return self._with(made)

    def greedy(self) -> Pattern:
        """Repeat as often as possible: a record that fits both the repetition and what follows is repeated."""
        return self._looping("greedy", loop=Loop.GREEDY)

    def reluctant(self) -> Pattern:
        """Repeat as rarely as possible: a record that fits both ends the repetition."""
        return self._looping("reluctant", loop=Loop.RELUCTANT)

    def consecutive(self) -> Pattern:
        """Allow no other records between the repetitions."""
        return self._spaced("consecutive", Gap.STRICT)

    def allow_combinations(self) -> Pattern:
        """Allow any records between the repetitions, also those that could be repetitions."""
        return self._spaced("allow_combinations", Gap.ANY)

    def until(self, condition: Callable[..., Any]) -> Pattern:
        """End a repetition without an upper bound at the first record that satisfies a condition."""
        tree = self._whole("until")
        if not isinstance(tree, Repeat) or tree.most is not None:
            hint = "write .one_or_more().until(...) or .times_or_more(2).until(...)"
            raise PatternError("until() ends a repetition without an upper bound, and this is none", hint=hint)
        name = f"until-{len(self.definitions)}-{'-'.join(definition.name for definition in self.definitions)}"
        made = Definition(name, Function.of(condition, (1, 2), CONDITION), internal=True)
        return replace(self._with(replace(tree, until=(*tree.until, name))), definitions=(*self.definitions, made))

    def within(
        self, duration: Duration, *, between: Literal["first_and_last", "neighbours"] = "first_and_last"
    ) -> Pattern:
        """Match only records less than `duration` after the first one.

        With `between="neighbours"` the limit is for the last part alone: each of its records comes less than `duration`
        after the one that was taken before it, and an absence lasts that long.

        >>> paid = order.followed_by(payment).within("10 min", between="neighbours").followed_by(delivery)
        """
        within_ms = _positive(duration, "within()", '.within("10 min")')
        if between == "first_and_last":
            return replace(self, within_ms=within_ms)
        if between != "neighbours":
            raise PatternError(f"between={between!r} is not known", hint='write "first_and_last" or "neighbours"')
        if self.grouped or not isinstance(self.tree, Sequence):
            return self._with(Spaced(self.tree, within_ms))
        *parts, last = self.tree.parts
        spaced = replace(last.node, within_ms=within_ms) if isinstance(last.node, Absent) else None
        if isinstance(last.node, Absent) and last.node.immediately:
            hint = "write not_followed_by(), or put the limit on the part behind"
            raise PatternError("not_next() looks at one record, and has no time limit", hint=hint)
        limited = Part(last.gap, spaced or Spaced(last.node, within_ms))
        return self._with(Sequence((*parts, limited)))

    def __or__(self, other: Pattern) -> Pattern:
        """Match either; the left one is preferred."""
        other = other._apart_from(self.definitions)
        options = [
            *(self.tree.options if isinstance(self.tree, Choice) else [self.tree]),
            *(other.tree.options if isinstance(other.tree, Choice) else [other.tree]),
        ]
        return self._merged(other, Choice(tuple(options)))

    @property
    def ends_in_time(self) -> bool:
        """Whether an open match can end because of a time limit."""
        return self.within_ms is not None or spaced(self.tree)

    def group(self) -> Pattern:
        """Return the whole as one part, so that quantifiers apply to all of it."""
        tree = Sequence((Part(Gap.STRICT, self.tree),)) if isinstance(self.tree, Repeat) else self.tree
        return replace(self, tree=tree, grouped=True)

    def __str__(self) -> str:
        return self.text or show(self.tree)

    def _then(self, gap: Gap, other: Pattern) -> Pattern:
        if not isinstance(other, Pattern):
            raise PatternError(f"{other!r} is not a pattern", hint='write cep.event("big", lambda e: ...)')
        other = other._apart_from(self.definitions)
        parts = self._parts(Gap.RELAXED)
        following = other._parts(gap) if not other.grouped else (Part(gap, other.tree),)
        if following and following[0].gap is not gap:
            following = (Part(gap, following[0].node), *following[1:])
        return replace(self._merged(other, Sequence((*parts, *following))), grouped=False)

    def _without(self, other: Pattern, *, immediately: bool) -> Pattern:
        if not isinstance(other, Pattern) or not isinstance(other.tree, Take):
            verb = "not_next" if immediately else "not_followed_by"
            raise PatternError(f"{verb}() needs a single event", hint=f'write .{verb}(cep.event("x", lambda e: ...))')
        absent = Part(Gap.RELAXED, Absent(other.tree.variable, immediately))
        return replace(self._merged(other, Sequence((*self._parts(Gap.RELAXED), absent))), grouped=False)

    def _parts(self, gap: Gap) -> tuple[Part, ...]:
        if isinstance(self.tree, Sequence) and not self.grouped:
            return self.tree.parts
        return (Part(gap, self.tree),)

    def _whole(self, verb: str) -> Tree:
        if not self.grouped:
            hint = f"write a.followed_by(b.{verb}()) for the last part, or cep.group(a.followed_by(b)).{verb}() for all"
            raise PatternError(f"{verb}() could mean the last part or the whole sequence", hint=hint)
        return self.tree

    def _repeat(self, least: int, most: int | None, within: Duration | None) -> Pattern:
        tree = self._whole("times")
        gap_ms = None if within is None else _positive(within, "a repetition", '.times(3, within="1 min")')
        if least < 0 or (most is not None and (most < least or most == 0)):
            raise PatternError(f"times({least}, {most}) cannot match", hint="write times(2) or times(2, 4)")
        if isinstance(tree, Repeat):
            hint = "group it first: cep.group(a.times(2)).one_or_more()"
            raise PatternError("a repetition cannot be repeated directly", hint=hint)
        return self._with(Repeat(tree, max(least, 1), most, optional=least == 0, gap_ms=gap_ms))

    def _looping(self, verb: str, *, loop: Loop) -> Pattern:
        tree = self._whole(verb)
        if not isinstance(tree, Repeat):
            hint = f"write .one_or_more().{verb}(), .times(2, 4).{verb}() or .optional().{verb}()"
            raise PatternError(f"{verb}() is for repetitions", hint=hint)
        return self._with(replace(tree, loop=loop))

    def _spaced(self, verb: str, gap: Gap) -> Pattern:
        tree = self._whole(verb)
        if not isinstance(tree, Repeat | Permute):
            hint = f"write .one_or_more().{verb}() or .times(3).{verb}()"
            raise PatternError(f"{verb}() is for repetitions", hint=hint)
        return self._with(replace(tree, gap=gap))

    def _with(self, tree: Tree) -> Pattern:
        return replace(self, tree=tree)

    def _apart_from(self, others: tuple[Definition, ...]) -> Pattern:
        """Return this pattern with other names for its internal conditions, where those are taken by different ones."""
        taken = {definition.name: definition for definition in others if definition.internal}
        names: dict[str, str] = {}
        for definition in self.definitions:
            name = definition.name
            while taken.get(name, definition) is not definition:
                name += "+"
            names[definition.name] = name
        made = tuple(
            one if names[one.name] == one.name else replace(one, name=names[one.name]) for one in self.definitions
        )
        return replace(self, tree=with_names(self.tree, names), definitions=made)

    def _merged(self, other: Pattern, tree: Tree) -> Pattern:
        within = [within_ms for within_ms in (self.within_ms, other.within_ms) if within_ms is not None]
        definitions = merged(self.definitions, other.definitions)
        return Pattern(tree, definitions, min(within, default=None), self.semantics)


def _positive(duration: Duration, what: str, example: str) -> int:
    found_ms = to_ms(duration)
    if found_ms <= 0:
        raise PatternError(f"{what} needs a positive duration", hint=f"write {example}")
    return found_ms


def merged(*groups: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Return all definitions. One name has one condition."""
    found: dict[str, Definition] = {}
    for definition in (one for group in groups for one in group):
        known = found.setdefault(definition.name, definition)
        if known is not definition and (known.condition is not None or definition.condition is not None):
            raise PatternError(
                f'the variable "{definition.name}" has two conditions', hint="give each event its own name"
            )
    return tuple(found.values())


def event(name: str, condition: Callable[..., Any] | None = None) -> Pattern:
    if not name.isidentifier():
        raise PatternError(f'"{name}" cannot be the name of an event', hint="use letters, digits and underscores")
    made = Definition(name, None if condition is None else Function.of(condition, (1, 2), CONDITION))
    return Pattern(Take(name), (made,))


def permute(*patterns: Pattern) -> Pattern:
    if not 2 <= len(patterns) <= 6:
        raise PatternError("permute() takes two to six patterns", hint="write cep.permute(a, b, c)")
    definitions: tuple[Definition, ...] = ()
    trees: list[Tree] = []
    for one in patterns:
        apart = one._apart_from(definitions)
        definitions = merged(definitions, apart.definitions)
        trees.append(apart.tree)
    return Pattern(Permute(tuple(trees), Gap.RELAXED), definitions)
