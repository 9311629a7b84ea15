"""The syntax tree of a pattern: what every spelling is parsed to, and what the machine is compiled from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from potok.duration import show_ms
from potok.expressions.function import Function


class Gap(StrEnum):
    """Which records may lie between two that a pattern takes."""

    STRICT = "next"
    """None."""
    RELAXED = "followed_by"
    """Those that the pattern could not take."""
    ANY = "followed_by_any"
    """Any."""


class Loop(StrEnum):
    """Which repetitions are preferred."""

    EVERY = "every"
    GREEDY = "greedy"
    RELUCTANT = "reluctant"


class Semantics(StrEnum):
    """Which of the matches that begin with one record counts, unless all do."""

    FIRST = "first"
    """The one that is complete first; of those complete at one record, the first by preference. As in Flink CEP."""
    PREFERRED = "preferred"
    """The first by preference, whenever it is complete. As in regular expressions and in SQL."""


@dataclass(frozen=True, slots=True)
class Take:
    """One record that satisfies the condition of a variable."""

    variable: str


@dataclass(frozen=True, slots=True)
class Absent:
    """No record that satisfies the condition, before the next one that is taken; or not as the very next record. At
    the end of a pattern it lasts for `within_ms` after the record before, or until the time of the match is over."""

    variable: str
    immediately: bool
    within_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a sequence, and the gap before it."""

    gap: Gap
    node: Tree


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several, the first preferred."""

    options: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Permute:
    """All of several, in any order; the order as written is preferred."""

    options: tuple[Tree, ...]
    gap: Gap


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body several times, with `gap` between them; with `optional` possibly not at all. A record that satisfies
    one of `until` ends the repetition. A repetition begins less than `gap_ms` after the one before has ended."""

    body: Tree
    least: int
    most: int | None
    gap: Gap = Gap.RELAXED
    loop: Loop = Loop.EVERY
    until: tuple[str, ...] = ()
    optional: bool = False
    gap_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Spaced:
    """Records that each come less than `gap_ms` after the one before."""

    body: Tree
    gap_ms: int


@dataclass(frozen=True, slots=True)
class Start:
    """The position before the first record of a key."""


@dataclass(frozen=True, slots=True)
class End:
    """The position behind the last record of a key, for records that are all known."""


Tree: TypeAlias = Start | End | Take | Absent | Sequence | Choice | Permute | Repeat | Spaced


@dataclass(frozen=True, slots=True)
class Definition:
    """The condition of a variable; None is true for every record.

    A function of one argument sees the record, one of two arguments also the match so far.
    """

    name: str
    condition: Function | None = None
    internal: bool = False

    @property
    def iterative(self) -> bool:
        return self.condition is not None and self.condition.arity == 2


class SkipTo(StrEnum):
    NO_SKIP = "no_skip"
    NEXT = "skip_to_next"
    PAST_LAST = "skip_past_last"
    FIRST = "skip_to_first"
    LAST = "skip_to_last"


@dataclass(frozen=True, slots=True)
class AfterMatch:
    """Where to look for the next match after one was found."""

    skip: SkipTo
    variable: str = ""
    among: tuple[str, ...] = ()
    """The variables that `variable` stands for, if not itself."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.among or ((self.variable,) if self.variable else ())

    def __str__(self) -> str:
        return f"{self.skip.value}({self.variable})" if self.variable else self.skip.value


def variables_of(tree: Tree) -> list[str]:
    """Return the variables that a pattern can take, each once, in the order of the pattern."""
    match tree:
        case Take(variable):
            return [variable]
        case Absent() | Start() | End():
            return []
        case Sequence(parts):
            found = [name for part in parts for name in variables_of(part.node)]
        case Choice(options) | Permute(options, _):
            found = [name for option in options for name in variables_of(option)]
        case Repeat() | Spaced():
            found = variables_of(tree.body)
    return list(dict.fromkeys(found))


def nullable(tree: Tree) -> bool:
    """Whether a pattern matches without taking a record."""
    match tree:
        case Take():
            return False
        case Absent() | Start() | End():
            return True
        case Sequence(parts):
            return all(nullable(part.node) for part in parts)
        case Choice(options):
            return any(map(nullable, options))
        case Permute(options, _):
            return all(map(nullable, options))
        case Repeat():
            return tree.optional or tree.least == 0 or nullable(tree.body)
        case Spaced():
            return nullable(tree.body)


def firsts_of(tree: Tree) -> list[str]:
    """Return the variables that can be taken first."""
    match tree:
        case Take(variable):
            return [variable]
        case Absent() | Start() | End():
            return []
        case Sequence(parts):
            found: list[str] = []
            for part in parts:
                found += firsts_of(part.node)
                if not nullable(part.node):
                    break
            return list(dict.fromkeys(found))
        case Choice(options) | Permute(options, _):
            return list(dict.fromkeys(name for option in options for name in firsts_of(option)))
        case Repeat() | Spaced():
            return firsts_of(tree.body)


def anchored(tree: Tree) -> bool:
    """Whether a pattern refers to the first record of a key."""
    match tree:
        case Start():
            return True
        case Sequence(parts):
            return any(anchored(part.node) for part in parts)
        case Choice(options) | Permute(options, _):
            return any(map(anchored, options))
        case Repeat() | Spaced():
            return anchored(tree.body)
    return False


def spaced(tree: Tree) -> bool:
    """Whether the time between two records of a pattern is limited."""
    match tree:
        case Spaced():
            return True
        case Absent(_, _, within_ms):
            return within_ms is not None
        case Sequence(parts):
            return any(spaced(part.node) for part in parts)
        case Choice(options) | Permute(options, _):
            return any(map(spaced, options))
        case Repeat():
            return tree.gap_ms is not None or spaced(tree.body)
    return False


def with_names(tree: Tree, names: Mapping[str, str]) -> Tree:
    """Return a pattern whose repetitions are ended by other variables."""
    match tree:
        case Sequence(parts):
            return Sequence(tuple(replace(part, node=with_names(part.node, names)) for part in parts))
        case Choice(options):
            return Choice(tuple(with_names(option, names) for option in options))
        case Permute(options, gap):
            return Permute(tuple(with_names(option, names) for option in options), gap)
        case Repeat(body):
            until = tuple(names.get(name, name) for name in tree.until)
            return replace(tree, body=with_names(body, names), until=until)
        case Spaced(body, gap_ms):
            return Spaced(with_names(body, names), gap_ms)
    return tree


def show(tree: Tree) -> str:
    """Render a pattern: gaps as `>` (next), `..` (followed by) and `...` (followed by any)."""
    match tree:
        case Take(variable):
            return variable
        case Absent(variable, immediately, within_ms):
            return f"!{variable}" if immediately else f"!..{variable}{_show_ms(within_ms)}"
        case Start() | End():
            return "^" if isinstance(tree, Start) else "$"
        case Sequence(parts):
            return f"({''.join(_show_part(index, part) for index, part in enumerate(parts))})"
        case Choice(options):
            return f"({' | '.join(map(show, options))})"
        case Permute(options, gap):
            return f"permute{_GAPS[gap].strip()}({', '.join(map(show, options))})"
        case Repeat():
            until = f" until {', '.join(tree.until)}" if tree.until else ""
            bounds = f"{tree.least},{'' if tree.most is None else tree.most}"
            optional = " or none" if tree.optional else ""
            between = f"{_GAPS[tree.gap].rstrip()}{_show_ms(tree.gap_ms)}"
            return f"{show(tree.body)}{{{bounds}{between} {tree.loop.value}{until}{optional}}}"
        case Spaced(body, gap_ms):
            return f"({show(body)}{_show_ms(gap_ms)})"


_GAPS = {Gap.STRICT: " > ", Gap.RELAXED: " .. ", Gap.ANY: " ... "}


def _show_ms(ms: int | None) -> str:
    return "" if ms is None else f"<{show_ms(ms)}"


def _show_part(index: int, part: Part) -> str:
    return show(part.node) if index == 0 else f"{_GAPS[part.gap]}{show(part.node)}"
