"""The plan of a pull query: what is read, joined, filtered, grouped, selected and ordered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from potok.sql.analysis.form import Form
from potok.sql.analysis.grouping import Grouping
from potok.sql.analysis.joins import JoinAnalysis
from potok.sql.analysis.order import Order
from potok.sql.analysis.relations import RelationAnalysis
from potok.sql.analysis.scope import ROWTIME, slot_of
from potok.sql.analysis.select import Analysis, analyse
from potok.sql.catalog import Catalog, Source
from potok.sql.expressions.typed import Typed, columns_of
from potok.sql.properties import NO_PROPERTIES, Properties
from potok.sql.syntax import ast
from potok.statements.pull.allowed_values import Allowed, allowed_by
from potok.statements.results import ResultColumn, result_columns


@dataclass(frozen=True, slots=True)
class PullPlan:
    """A pull query that is ready to be executed."""

    relations: tuple[RelationAnalysis, ...]
    joins: tuple[JoinAnalysis, ...]
    where: Typed | None
    lists: tuple[Typed, ...]
    """Expressions of table functions; each element becomes a row, under the slots `exploded.0`, `exploded.1`..."""
    grouping: Grouping | None
    having: Typed | None
    projected: tuple[Typed, ...]
    order: tuple[Order, ...]
    limit: int | None
    columns: tuple[ResultColumn, ...]
    wanted: frozenset[str]
    """The slots to read from the sources."""
    allowed: Mapping[str, Allowed] = field(default_factory=dict)
    in_time: str = ""
    """The slot of the timestamp by which rows are ordered before aggregation, if their order matters."""

    @property
    def streams_rows(self) -> bool:
        """Whether rows can be returned as they are read, so that a LIMIT ends the scan."""
        matched = any(relation.match is not None for relation in self.relations)
        return not self.joins and self.grouping is None and not self.order and not matched


def plan_pull(catalog: Catalog, query: ast.Select, properties: Properties = NO_PROPERTIES) -> PullPlan:
    """Plan a pull query. Raises `SqlError` if the query is invalid."""
    found = analyse(catalog, query, Form.PULL, properties)
    first = found.relations[0]
    in_time = slot_of(first.alias, ROWTIME) if _in_order(found.grouping, first.source) else ""
    return PullPlan(
        found.relations,
        found.joins,
        found.where,
        tuple(typed for _, typed in found.lists),
        found.grouping,
        found.having,
        found.projected,
        found.order,
        query.limit,
        result_columns(found, _key_slots(found)),
        _read_slots(found) | ({in_time} - {""}),
        {} if found.where is None else allowed_by(found.where),
        in_time,
    )


def _key_slots(found: Analysis) -> set[str]:
    """Return the columns that identify a row of the result. Several records of a stream may have the same key."""
    if found.grouping is not None:
        return {f"group.{name}" for name, _ in found.grouping.keys}
    return {field.slot for field in found.rows.fields if field.is_key and found.rows.is_table}


def _read_slots(found: Analysis) -> frozenset[str]:
    read = [typed for _, typed in found.lists] + ([] if found.where is None else [found.where])
    for join in found.joins:
        read += [*join.left, *join.right]
    if found.grouping is None:
        read += [*found.projected, *(part.expression for part in found.order)]
    else:
        read += [typed for _, typed in found.grouping.keys]
        read += [argument for item in found.grouping.aggregates for argument in item.arguments]
    return frozenset(slot for typed in read for slot in columns_of(typed))


def _in_order(grouping: Grouping | None, source: Source) -> bool:
    """Return whether an aggregate depends on the order of records, which reading partition by partition does not
    preserve."""
    aggregates = () if grouping is None or source.is_table else grouping.aggregates
    return any(item.how.fold.order_dependent for item in aggregates)
