"""Decide which rows of a table a pull query reads: by keys, by one range of keys, or all. Used to read the rows and to
explain the query."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from potok.sql.analysis.joins import JoinAnalysis
from potok.sql.analysis.scope import slot_of
from potok.sql.catalog import Source
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.syntax import ast
from potok.statements.pull.allowed_values import Allowed

MOST_LOOKUPS = 10_000

FEW = 1_000
"""Up to this many rows of one side of a join look up their matches; more read the whole table."""


@dataclass(frozen=True, slots=True)
class Choice:
    """`keys` has the allowed values of each key column; `within` restricts the only key column. If neither is set, all
    rows are read."""

    keys: tuple[tuple[Any, ...], ...] | None = None
    within: Allowed | None = None


EVERYTHING = Choice()


def choice_of(source: Source, alias: str, allowed: Mapping[str, Allowed], *, windows: bool) -> Choice:
    """Return the smallest selection that covers a condition. `windows` says that rows are stored by key and window;
    otherwise a windowed source has the windows in its record keys."""
    if not allowed or (source.window is not None and not windows):
        return EVERYTHING
    parts = [allowed.get(slot_of(alias, column.name)) for column in source.keys]
    values = [part.values for part in parts if part is not None and part.values is not None]
    if len(values) == len(parts) and math.prod(map(len, values)) <= MOST_LOOKUPS:
        return Choice(tuple(values))
    if len(parts) == 1 and parts[0] is not None and parts[0].values is None and not windows:
        return Choice(within=parts[0])
    return EVERYTHING


def partners_key(source: Source, alias: str, join: JoinAnalysis) -> tuple[Typed, str] | None:
    """Return the expression for the keys of matches, and the slot of the key that it is compared with; None if matches
    cannot be looked up, because the join keeps unmatched rows or compares something else."""
    outer = join.kind in (ast.JoinKind.RIGHT, ast.JoinKind.FULL)
    if outer or not source.is_table or len(source.keys) != 1 or source.window is not None:
        return None
    slot = slot_of(alias, source.keys[0].name)
    for one, other in zip(join.left, join.right, strict=True):
        if isinstance(other, ColumnRef) and other.column == slot and not pa.types.is_nested(other.type):
            return one, slot
    return None
