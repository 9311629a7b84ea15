"""EXPLAIN: the steps of a query and where each of them runs, or the plan of a pull query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import read_progress
from potok.sql.analysis.form import Form
from potok.sql.analysis.select import analyse
from potok.sql.errors import Refused
from potok.sql.planner.graph import Graph
from potok.sql.planner.query import lower
from potok.sql.syntax import ast
from potok.sql.syntax.statement_text import show_query, show_statement
from potok.statements.errors import UnknownQuery
from potok.statements.inspect.listing import listed, texts
from potok.statements.inspect.pull import plan_of
from potok.statements.inspect.queries import lag_of
from potok.statements.messages import counted
from potok.statements.processing_log import failure_messages
from potok.statements.push.plan import filled
from potok.statements.results import Rows
from potok.topology.describe import as_text, description_of
from potok.topology.graph import Topology

if TYPE_CHECKING:
    from potok.statements.database import Database, QueryInfo

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
