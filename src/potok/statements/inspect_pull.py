"""How a pull query is answered: by looking keys up, by a range of keys, or by looking at everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from potok.sql.catalog import Source
from potok.sql.lowering.scope import WINDOW_BOUNDS
from potok.sql.syntax import ast
from potok.sql.syntax.text import show
from potok.sql.syntax.walk import names_of
from potok.sql.types import quoted

if TYPE_CHECKING:
    from potok.statements.database import Database

_RANGES = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Access:
    """A step of a pull query: what it does, with what, and why not less."""

    name: str
    kind: str
    detail: str
    reason: str = ""


def plan_of(database: Database, query: ast.Select) -> list[Access]:
    """The steps in their order: each source, then what is done with their rows."""
    from potok.statements.pull import check_pull

    check_pull(database.catalog, query)
    relations = [query.relation, *(clause.relation for clause in query.joins)]
    found = [_access(database, relation, query) for relation in relations]
    for clause in query.joins:
        found.append(Access(clause.relation.name, f"{clause.kind.value.lower()} join", show(clause.condition)))
    if query.where is not None:
        found.append(Access("where", "filter", show(query.where)))
    if query.group_by:
        found.append(Access("group by", "aggregate", ", ".join(map(show, query.group_by))))
    if query.having is not None:
        found.append(Access("having", "filter", show(query.having)))
    if query.order_by:
        found.append(Access("order by", "sort", ", ".join(show(item.expression) for item in query.order_by)))
    return found if query.limit is None else [*found, Access("limit", "limit", str(query.limit))]


def _access(database: Database, relation: ast.Relation, query: ast.Select) -> Access:
    source = database.catalog.source(relation.name, relation.at)
    if not source.is_table:
        return Access(source.name, "topic scan", f"the records of topic {source.topic}", "a stream is not kept by key")
    if query.joins:
        return Access(source.name, "table scan", f"all rows of {quoted(source.name)}", "a join looks at all rows")
    conditions = [] if query.where is None else list(_conjuncts(query.where))
    fixed = {name for condition in conditions for name in _fixed(condition)}
    windows = [show(condition) for condition in conditions if _is_range(condition, WINDOW_BOUNDS)]
    within = f", windows where {' AND '.join(windows)}" if source.window is not None and windows else ""
    keys = [column.name for column in source.keys]
    if keys and set(keys) <= fixed:
        wanted = [show(c) for c in conditions if set(_fixed(c)) & set(keys)]
        return Access(source.name, "key lookup", f"{' AND '.join(wanted)}{within}")
    ranges = [show(condition) for condition in conditions if _is_range(condition, keys)]
    if ranges and len(keys) == 1:
        return Access(source.name, "key range", f"{' AND '.join(ranges)}{within}")
    return Access(source.name, "table scan", f"all rows of {quoted(source.name)}{within}", _why(source, fixed))


def _why(source: Source, fixed: set[str]) -> str:
    missing = [quoted(column.name) for column in source.keys if column.name not in fixed]
    return f"WHERE does not say which {', '.join(missing)}"


def _conjuncts(condition: ast.Expression) -> Iterator[ast.Expression]:
    if isinstance(condition, ast.Binary) and condition.op == "AND":
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition


def _fixed(condition: ast.Expression) -> list[str]:
    """The columns that a condition pins to values which are known beforehand."""
    if isinstance(condition, ast.Binary) and condition.op == "=":
        for name, value in ((condition.left, condition.right), (condition.right, condition.left)):
            if isinstance(name, ast.Name) and not names_of(value):
                return [name.name]
    if isinstance(condition, ast.Binary) and condition.op == "OR":
        left, right = _fixed(condition.left), _fixed(condition.right)
        return left if left == right else []
    if isinstance(condition, ast.In) and not condition.negated and isinstance(condition.operand, ast.Name):
        return [] if any(names_of(item) for item in condition.items) else [condition.operand.name]
    return []


def _is_range(condition: ast.Expression, names: list[str] | tuple[str, ...]) -> bool:
    """Whether a condition bounds one of these columns."""
    match condition:
        case ast.Between(ast.Name(name), low, high, False):
            return name in names and not names_of(low) and not names_of(high)
        case ast.Binary(op, left, right) if op in _RANGES or (op == "=" and names == WINDOW_BOUNDS):
            sides = ((left, right), (right, left))
            return any(isinstance(a, ast.Name) and a.name in names and not names_of(b) for a, b in sides)
    return False
