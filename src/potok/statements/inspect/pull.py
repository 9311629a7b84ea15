"""Explain a pull query: key lookup, key range, or scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from potok.sql.analysis.joins import JoinAnalysis
from potok.sql.analysis.relations import RelationAnalysis
from potok.sql.analysis.scope import slot_of
from potok.sql.catalog import Source
from potok.sql.syntax import ast
from potok.sql.syntax.text import show
from potok.sql.types import quoted
from potok.statements.pull.allowed_values import Allowed
from potok.statements.pull.plan import PullPlan, plan_pull
from potok.statements.pull.row_selection import FEW, MOST_LOOKUPS, choice_of, partners_key

if TYPE_CHECKING:
    from potok.statements.database import Database

_SHOWN = 5
"""How many values of a key to show."""


@dataclass(frozen=True, slots=True)
class Access:
    """A step of a pull query: what it does, its arguments, and why it cannot read less."""

    name: str
    kind: str
    detail: str
    reason: str = ""


def plan_of(database: Database, query: ast.Select) -> list[Access]:
    """Return the steps in order: each source, then the operations on the rows."""
    plan = plan_pull(database.catalog, query)
    found = [_access(plan.relations[0], plan.allowed)]
    for relation, join, clause in zip(plan.relations[1:], plan.joins, query.joins, strict=True):
        found.append(_partners(relation, join, plan))
        found.append(Access(relation.alias, f"{clause.kind.value.lower()} join", show(clause.condition)))
    if query.where is not None:
        found.append(Access("where", "filter", show(query.where)))
    if query.group_by:
        found.append(Access("group by", "aggregate", ", ".join(map(show, query.group_by))))
    if query.having is not None:
        found.append(Access("having", "filter", show(query.having)))
    if query.order_by:
        found.append(Access("order by", "sort", ", ".join(show(item.expression) for item in query.order_by)))
    if query.limit is not None:
        early = "stops reading" if plan.streams_rows else "after all rows are read"
        found.append(Access("limit", "limit", str(query.limit), early))
    return found


def _access(relation: RelationAnalysis, allowed: Mapping[str, Allowed]) -> Access:
    source, alias = relation.source, relation.alias
    if not source.is_table:
        return Access(
            source.name, "topic scan", f"the records of topic {source.topic}", "streams are not indexed by key"
        )
    keys = [column.name for column in source.keys]
    within = _windows(source, alias, allowed)
    choice = choice_of(source, alias, allowed, windows=source.window is not None and bool(source.query))
    if choice.keys is not None:
        keys_text = [f"{quoted(name)}: {_values(values)}" for name, values in zip(keys, choice.keys, strict=True)]
        return Access(source.name, "key lookup", "; ".join([*keys_text, *within]))
    if choice.within is not None:
        return Access(source.name, "key range", f"{quoted(keys[0])}: {_range(choice.within)}")
    return Access(
        source.name, "table scan", "; ".join([f"all rows of {quoted(source.name)}", *within]), _why(relation, allowed)
    )


def _why(relation: RelationAnalysis, allowed: Mapping[str, Allowed]) -> str:
    """Explain why all rows are read."""
    parts = [(column.name, allowed.get(slot_of(relation.alias, column.name))) for column in relation.source.keys]
    missing = ", ".join(quoted(name) for name, part in parts if part is None or not part.values)
    if missing:
        return f"WHERE does not restrict {missing}"
    if relation.source.window is not None and not relation.source.query:
        return "the windows are part of the record keys"
    return f"more than {MOST_LOOKUPS} keys"


def _partners(relation: RelationAnalysis, join: JoinAnalysis, plan: PullPlan) -> Access:
    """Explain how a joined source is read: by key for few rows if the key is compared, else by a scan."""
    found = _access(relation, plan.allowed)
    if found.kind == "table scan" and partners_key(relation.source, relation.alias, join) is not None:
        name = relation.source.name
        return Access(name, "key lookup", f"the partners of up to {FEW} rows; all rows if there are more")
    return found


def _windows(source: Source, alias: str, allowed: Mapping[str, Allowed]) -> list[str]:
    bounds = [(name, allowed.get(slot_of(alias, name))) for name in ("WINDOWSTART", "WINDOWEND")]
    return [f"{name}: {_bounds(found)}" for name, found in bounds if found is not None and source.window is not None]


def _bounds(allowed: Allowed) -> str:
    return _range(allowed) if allowed.values is None else _values(allowed.values)


def _values(values: Sequence[Any]) -> str:
    shown = list(map(repr, values))
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more if shown else "none"


def _range(allowed: Allowed) -> str:
    if allowed.prefix:
        return f"starting with {allowed.prefix!r}"
    low = "" if allowed.low is None else f"from {allowed.low!r}"
    high = "" if allowed.high is None else f"to {allowed.high!r}"
    return f"{low} {high}".strip()
