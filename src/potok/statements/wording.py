"""What is said of statements that were carried out, in the words that clients of ksqlDB look for."""

from __future__ import annotations

from potok.sql.syntax import ast


def prefix_of(statement: ast.Statement) -> str:
    """The beginning of the id of the query that a statement begins; "" if it begins none."""
    match statement:
        case ast.CreateAs():
            return f"{'CTAS' if statement.is_table else 'CSAS'}_{statement.name}"
        case ast.InsertSelect():
            return "INSERTQUERY"
        case ast.CreateSource() if statement.is_table and statement.read_only:
            return f"CST_{statement.name}"
    return ""


def kind_of(statement: ast.Statement) -> str:
    """What kind of query a statement begins; "" if it begins none."""
    match statement:
        case ast.CreateAs():
            return "CTAS" if statement.is_table else "CSAS"
        case ast.InsertSelect():
            return "INSERT"
        case ast.CreateSource() if statement.is_table and statement.read_only:
            return "SOURCE TABLE"
    return ""


def done_message(statement: ast.Statement, query_id: str) -> str:
    match statement:
        case ast.CreateSource():
            return f"{'Table' if statement.is_table else 'Stream'} created"
        case ast.CreateAs() | ast.InsertSelect():
            return f"Created query with ID {query_id}"
        case ast.CreateType():
            return f"Registered custom type with name '{statement.name}'"
        case ast.AlterSource():
            return f"{'Table' if statement.is_table else 'Stream'} altered"
        case ast.Drop(kind="TYPE"):
            return f"Dropped type '{statement.name}'"
        case ast.Drop():
            deleted = " and its topic deleted" if statement.delete_topic else ""
            return f"Source {statement.name} dropped{deleted}"
        case ast.Steer():
            return f"Query {statement.action.lower()}{'d' if statement.action.endswith('E') else 'ed'}"
    return "Done"


def command_id_of(statement: ast.Statement) -> str:
    match statement:
        case ast.CreateSource() | ast.CreateAs():
            return f"{'table' if statement.is_table else 'stream'}/{statement.name}/create"
        case ast.InsertSelect():
            return f"stream/{statement.name}/create"
        case ast.CreateType():
            return f"type/{statement.name}/create"
        case ast.AlterSource():
            return f"{'table' if statement.is_table else 'stream'}/{statement.name}/alter"
        case ast.Drop():
            return f"{statement.kind.lower()}/{statement.name}/drop"
        case ast.Steer():
            return f"{'terminate' if statement.action == 'TERMINATE' else 'alter'}/{statement.query_id}/execute"
    return ""
