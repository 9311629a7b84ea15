"""Statements with IF [NOT] EXISTS that have nothing to do."""

from __future__ import annotations

from potok.sql.catalog import Catalog
from potok.sql.syntax import ast
from potok.statements.results import Done


def already(statement: ast.Statement, catalog: Catalog) -> Done | None:
    """Return the result of such a statement; None for all others."""
    if isinstance(statement, ast.CreateSource | ast.CreateAs) and statement.if_not_exists:
        known = catalog.sources.get(statement.name)
        if known is not None:
            return Done(f"{known.kind.capitalize()} {known.name} already exists")
        if statement.name in catalog.missing:
            return Done(f"{statement.name} already exists but cannot be loaded")
    if isinstance(statement, ast.CreateType) and statement.if_not_exists and statement.name in catalog.types:
        return Done(f"Type {statement.name} already exists")
    if isinstance(statement, ast.CreateConnector) and statement.if_not_exists and statement.name in catalog.connectors:
        return Done(f"Connector {statement.name} already exists")
    if isinstance(statement, ast.Drop) and statement.kind == "CONNECTOR":
        if statement.if_exists and statement.name not in catalog.connectors:
            return Done(f"Connector {statement.name} does not exist")
        return None
    if isinstance(statement, ast.Drop) and statement.if_exists:
        there = catalog.types if statement.kind == "TYPE" else catalog.sources
        if statement.name not in there and (statement.kind == "TYPE" or statement.name not in catalog.missing):
            return Done(f"{statement.kind.capitalize()} {statement.name} does not exist")
    return None
