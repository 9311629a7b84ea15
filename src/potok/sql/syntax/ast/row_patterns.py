"""MATCH_RECOGNIZE as it was parsed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from potok.sql.syntax.ast.expressions import Expression, Node, OrderItem


@dataclass(frozen=True, slots=True)
class PatternVariable(Node):
    name: str


@dataclass(frozen=True, slots=True)
class PatternSequence(Node):
    """Parts one after the other; none of them is the empty pattern `()`."""

    parts: tuple[RowPattern, ...]


@dataclass(frozen=True, slots=True)
class PatternChoice(Node):
    options: tuple[RowPattern, ...]


@dataclass(frozen=True, slots=True)
class PatternPermute(Node):
    options: tuple[RowPattern, ...]


@dataclass(frozen=True, slots=True)
class PatternRepeat(Node):
    """A quantifier: `{2,4}`, without an upper bound if `most` is None; reluctant with `?` behind it."""

    body: RowPattern
    least: int
    most: int | None
    reluctant: bool = False


@dataclass(frozen=True, slots=True)
class PatternExclusion(Node):
    """`{- a -}`: rows that ALL ROWS PER MATCH leaves out."""

    body: RowPattern


@dataclass(frozen=True, slots=True)
class PatternAnchor(Node):
    """`^` is before the first row of a partition, `$` behind the last one."""

    symbol: str


RowPattern: TypeAlias = (
    PatternVariable
    | PatternSequence
    | PatternChoice
    | PatternPermute
    | PatternRepeat
    | PatternExclusion
    | PatternAnchor
)


class RowsPerMatch(Enum):
    ONE = "ONE ROW PER MATCH"
    SHOW_EMPTY = "ALL ROWS PER MATCH SHOW EMPTY MATCHES"
    OMIT_EMPTY = "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    UNMATCHED = "ALL ROWS PER MATCH WITH UNMATCHED ROWS"


@dataclass(frozen=True, slots=True)
class Measure(Node):
    expression: Expression
    name: str


@dataclass(frozen=True, slots=True)
class SkipAfterMatch(Node):
    """`where` is PAST LAST ROW, TO NEXT ROW, TO FIRST or TO LAST; the last two name a variable."""

    where: str
    variable: str = ""


@dataclass(frozen=True, slots=True)
class Subset(Node):
    name: str
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VariableDefinition(Node):
    name: str
    condition: Expression


@dataclass(frozen=True, slots=True)
class MatchRecognize(Node):
    partition_by: tuple[Expression, ...]
    order_by: tuple[OrderItem, ...]
    grace_ms: int | None
    measures: tuple[Measure, ...]
    rows: RowsPerMatch
    timeouts: bool
    """SHOW TIMEOUT MATCHES: partial matches whose WITHIN has passed become rows as well."""
    after: SkipAfterMatch | None
    pattern: RowPattern
    within_ms: int | None
    subsets: tuple[Subset, ...]
    definitions: tuple[VariableDefinition, ...]
