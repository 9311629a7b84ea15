"""Statements that change nothing, because they say IF [NOT] EXISTS and it is so."""

from __future__ import annotations

from potok.sql.catalog import Catalog
from potok.sql.syntax import ast
from potok.statements.results import Done


def already(statement: ast.Statement, catalog: Catalog) -> Done | None:
    """What there is to say of such a statement; None of all others."""
    if isinstance(statement, ast.CreateSource | ast.CreateAs) and statement.if_not_exists:
        known = catalog.sources.get(statement.name)
        if known is not None:
            return Done(f"{known.kind.capitalize()} {known.name} is there already")
        if statement.name in catalog.missing:
            return Done(f"{statement.name} is there already, and cannot be read here")
    if isinstance(statement, ast.CreateType) and statement.if_not_exists and statement.name in catalog.types:
        return Done(f"Type {statement.name} is there already")
    if isinstance(statement, ast.Drop) and statement.if_exists:
        there = catalog.types if statement.kind == "TYPE" else catalog.sources
        if statement.name not in there and (statement.kind == "TYPE" or statement.name not in catalog.missing):
            return Done(f"{statement.kind.capitalize()} {statement.name} was not there")
    return None
