"""Execute a statement of a request: log changes, and leave out what its sender may not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.types import Scope

from potok.server.access.guard import caller_of
from potok.server.access.rights import visible
from potok.server.access.work import changes
from potok.server.context import Site
from potok.sql.syntax import ast
from potok.statements.results import Result
from potok.statements.session import SqlSession


def run_for(scope: Scope, site: Site, session: SqlSession, parsed: ast.Parsed, properties: Mapping[str, str]) -> Result:
    """Execute one statement in the thread of the caller, which `allow` has accepted."""
    statement = parsed.statement

    def work() -> Result:
        return site.work.run(session, parsed, properties)

    if changes([parsed]) or isinstance(statement, ast.InsertValues):
        return site.audit.statement(scope, *_action(statement), work)
    return visible(work(), statement, caller_of(scope), site.database)


def described(script: Sequence[ast.Parsed]) -> str:
    """Return what the first statements of a script do, for the entry of a script that is denied."""
    return ", ".join(" ".join(_action(parsed.statement)).strip() for parsed in script[:10])


def _action(statement: ast.Statement) -> tuple[str, str]:
    """Return what a statement does, and to what; never its text, which may contain a password."""
    name = str(getattr(statement, "name", ""))
    match statement:
        case ast.CreateSource() | ast.CreateAs() | ast.AlterSource():
            verb = "ALTER" if isinstance(statement, ast.AlterSource) else "CREATE"
            return f"{verb} {'TABLE' if statement.is_table else 'STREAM'}", name
        case ast.CreateType():
            return "CREATE TYPE", name
        case ast.CreateConnector():
            return "CREATE CONNECTOR", name
        case ast.Drop():
            return f"DROP {statement.kind}{' DELETE TOPIC' if statement.delete_topic else ''}", name
        case ast.InsertValues() | ast.InsertSelect():
            return f"INSERT {'VALUES' if isinstance(statement, ast.InsertValues) else 'SELECT'}", name
        case ast.Steer():
            return statement.action, statement.query_id
    return type(statement).__name__, name
