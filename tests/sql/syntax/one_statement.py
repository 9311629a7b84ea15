"""The only statement of a text; the `;` may be left out."""

from __future__ import annotations

from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script


def parse_statement(text: str) -> ast.Statement:
    (found,) = parse_script(text if text.rstrip().endswith(";") else f"{text};")
    return found.statement
