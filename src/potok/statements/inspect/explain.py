"""EXPLAIN: the steps of a query and where each of them runs, or the plan of a pull query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import read_progress
from potok.sql.analysis.form import Form
from potok.sql.analysis.joins import JoinAnalysis
from potok.sql.analysis.relations import RelationAnalysis
from potok.sql.analysis.scope import slot_of
from potok.sql.analysis.select import analyse
from potok.sql.catalog import Source
from potok.sql.errors import Refused
from potok.sql.planner.graph import Graph
from potok.sql.planner.query import lower
from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import show
from potok.sql.syntax.statement_text import show_query, show_statement
from potok.sql.types import quoted
from potok.statements.errors import UnknownQuery
from potok.statements.inspect.listing import listed, texts
from potok.statements.inspect.queries import lag_of
from potok.statements.messages import counted
from potok.statements.pull.allowed_values import Allowed
from potok.statements.pull.plan import PullPlan, plan_pull
from potok.statements.pull.row_selection import FEW, MOST_LOOKUPS, choice_of, partners_key
from potok.statements.push.plan import filled
from potok.statements.queries.processing_log import failure_messages
from potok.statements.results import Rows
from potok.topology.describe import as_text, description_of
from potok.topology.graph import Topology

if TYPE_CHECKING:
    from potok.statements.database import Database
    from potok.statements.queries.runner import QueryInfo


_STEPS = texts("Step", "Kind", "Runs", "Detail", "Why")


def explain(database: Database, statement: ast.Explain) -> Rows:
    """Explain a statement or a running query."""
    if statement.statement is None:
        return _running(database, statement)
    explained = statement.statement
    match explained:
        case ast.Query(query) if query.emit is None:
            return _pull(database, query)
        case ast.Query(query):
            return _steps(_pushed(database, query), [("Type", "PUSH"), ("Statement", show_statement(explained))])
        case ast.CreateAs() | ast.InsertSelect() | ast.CreateSource():
            return _persistent(database, explained)
    hint = "EXPLAIN accepts SELECT, CREATE ... AS SELECT, INSERT INTO ... SELECT, or the id of a query"
    raise Refused("there is no query to explain", hint=hint, location=statement.at)


def _running(database: Database, statement: ast.Explain) -> Rows:
    known = {query.query_id: query for query in database.queries()}
    info = known.get(statement.query_id)
    if info is None:
        left = database.catalog_state().left_by(statement.query_id)
        raise UnknownQuery(statement.query_id, list(known), statement.at, left=left)
    wanted = database.catalog_state().queries[info.query_id]
    progress = read_progress(database.broker, info.query_id)
    failed = [("Failed expressions", "none" if progress is None else failure_messages(progress.failures))]
    return _steps(wanted.topology, [*_details(info), *failed, *_position(database, info)])


def _details(info: QueryInfo) -> list[tuple[str, Any]]:
    return [
        ("ID", info.query_id),
        ("Type", info.kind),
        ("Status", info.state),
        ("Error", info.error),
        ("Statement", info.text),
    ]


def _position(database: Database, info: QueryInfo) -> list[tuple[str, Any]]:
    """Show the progress of a query by partition."""
    entry = read_entry(database.broker, info.query_id)
    read = {} if entry is None else entry.offsets.topics
    ends = database.broker.end_offsets_of([topic for topic in info.reads if database.broker.has_topic(topic)])
    rows = [
        (topic, str(partition), read.get(topic, {}).get(partition, 0), end)
        for topic, parts in sorted(ends.items())
        for partition, end in sorted(parts.items())
    ]
    columns = texts("Topic", "Partition", "Offset", "End", numbers=("Offset", "End"))
    return [("Lag", counted(lag_of(database, info), "record")), ("Offsets", listed("offsets", columns, rows))]


def _persistent(database: Database, statement: ast.CreateAs | ast.InsertSelect | ast.CreateSource) -> Rows:
    text = f"{show_statement(statement)};"
    before = database.catalog_state().queries
    after = database.preview(ast.Parsed(statement, text, statement.at), {}).queries
    fresh = [wanted for query_id, wanted in after.items() if before.get(query_id) is not wanted]
    if not fresh:
        hint = "it only declares a topic and its columns; EXPLAIN a CREATE ... AS SELECT"
        raise Refused("the statement does not start a query", hint=hint, location=statement.at)
    return _steps(fresh[0].topology, [("Type", fresh[0].kind), ("Statement", text)])


def _pushed(database: Database, query: ast.Select) -> Topology:
    graph = Graph("push")
    lower(graph, analyse(database.catalog, filled(query), Form.PUSH), "rows")
    return graph.topology()


def _steps(topology: Topology, details: list[tuple[str, Any]]) -> Rows:
    description = description_of(topology)
    steps = description["steps"]
    rows = [(step["name"], step["kind"], step["runs"], step["detail"], step["reason"] or "") for step in steps]
    sources = [
        ("Reads topics", ", ".join(description["reads"])),
        ("Writes topics", ", ".join(description["writes"])),
        ("Keeps tables", ", ".join(description["tables"])),
        ("Execution plan", as_text(description)),
    ]
    return listed("explanation", _STEPS, rows, [*details, *sources])


def _pull(database: Database, query: ast.Select) -> Rows:
    """Show the plan of a pull query, source by source."""
    rows = [(found.name, found.kind, "native", found.detail, found.reason) for found in plan_of(database, query)]
    return listed("explanation", _STEPS, rows, [("Type", "PULL"), ("Statement", show_query(query))])


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
    rendered = list(map(repr, values))
    more = f" and {len(rendered) - _SHOWN} more" if len(rendered) > _SHOWN else ""
    return ", ".join(rendered[:_SHOWN]) + more if rendered else "none"


def _range(allowed: Allowed) -> str:
    if allowed.prefix:
        return f"starting with {allowed.prefix!r}"
    low = "" if allowed.low is None else f"from {allowed.low!r}"
    high = "" if allowed.high is None else f"to {allowed.high!r}"
    return f"{low} {high}".strip()
