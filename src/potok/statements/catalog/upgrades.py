"""Check what CREATE OR REPLACE ... AS changes in a running query, by the rules of ksqlDB.

A replacement may compute other values, filter by another condition, and add columns at the end. Sources, PARTITION BY,
GROUP BY and aggregates must stay the same. A query with a join, a window, a table function or an aggregate of a table
cannot be replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

from potok.sql.analysis.grouping import is_aggregate
from potok.sql.catalog import Catalog, Source
from potok.sql.errors import Refused, SourceLocation
from potok.sql.functions.function import TableFunction
from potok.sql.functions.registry import function_named
from potok.sql.syntax import ast
from potok.sql.syntax.walk import calls_of, names_of
from potok.sql.types import quoted, type_name


def check_columns(known: Source, source: Source, location: SourceLocation) -> None:
    """Reject a replacement that does more than add columns at the end."""
    for index, column in enumerate(known.values):
        kept = source.column(column.name)
        if kept is None or kept.is_key:
            raise not_upgradable(known, f"no column {quoted(column.name)}", location)
        if kept.type != column.type:
            change = f"{quoted(column.name)} as {type_name(kept.type)} instead of {type_name(column.type)}"
            raise not_upgradable(known, change, location)
        if source.values[index].name != column.name:
            raise not_upgradable(known, f"{quoted(column.name)} in another position", location)
    if (known.timestamp, known.timestamp_format) != (source.timestamp, source.timestamp_format):
        raise not_upgradable(known, "another TIMESTAMP column", location)


def check_query(known: Source, old: ast.Select, new: ast.Select, catalog: Catalog, location: SourceLocation) -> None:
    """Reject a replacement whose records would be partitioned, grouped or stored differently."""
    for query in (old, new):
        fixed = next(_fixed(query, catalog), "")
        if fixed:
            hint = f"choose another name, or DROP {known.kind} {quoted(known.name)}; and create it again"
            raise Refused(
                f"a query with {fixed} cannot be replaced: {quoted(known.name)}", hint=hint, location=location
            )
    if old.relation.name != new.relation.name:
        raise not_upgradable(known, f"another source, {quoted(new.relation.name)}", location)
    if old.partition_by != new.partition_by:
        raise not_upgradable(known, "another PARTITION BY", location)
    if old.group_by != new.group_by:
        raise not_upgradable(known, "another GROUP BY", location)
    if _aggregates(old) != _aggregates(new):
        raise not_upgradable(known, "other aggregates", location)
    if _aggregates(old) and _columns(old) != _columns(new):
        changed = ", ".join(quoted(name) for name in sorted(_columns(old) ^ _columns(new)))
        raise not_upgradable(known, f"other columns to aggregate: {changed}", location)


def not_upgradable(source: Source, change: str, location: SourceLocation) -> Refused:
    hint = f"choose another name, or DROP {source.kind} {quoted(source.name)}; and create it again"
    return Refused(
        f"the query of {quoted(source.name)} cannot be replaced by one with {change}", hint=hint, location=location
    )


def _fixed(query: ast.Select, catalog: Catalog) -> Iterator[str]:
    """Yield the parts that cannot be upgraded."""
    if query.joins:
        yield "a join"
    if query.window is not None:
        yield "a window"
    if any(isinstance(function_named(call.name), TableFunction) for item in query.items for call in calls_of(item)):
        yield "a table function"
    source = catalog.sources.get(query.relation.name)
    if source is not None and source.is_table and query.group_by:
        yield "an aggregate of a table"


def _aggregates(query: ast.Select) -> list[ast.Call]:
    parts = [*query.items, *(() if query.having is None else (query.having,))]
    return list(dict.fromkeys(call for part in parts for call in calls_of(part) if is_aggregate(call)))


def _columns(query: ast.Select) -> set[str]:
    """Return the columns that reach the aggregation: those of the result and of the conditions."""
    conditions = [part for part in (query.where, query.having) if part is not None]
    return {name.name for part in (*query.items, *query.group_by, *conditions) for name in names_of(part)}
