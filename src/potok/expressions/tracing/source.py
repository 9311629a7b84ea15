"""Find the source text of a lambda in the file that it was compiled from."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import CodeType


def source_of(code: CodeType) -> str:
    """Return the source of a function or lambda, as one line for a lambda; "" if it cannot be found."""
    candidates = [node for node in _functions(code.co_filename) if _matches(node, code)]
    if len(candidates) > 1:
        candidates = [node for node in candidates if _encloses(node, code)]
    if not candidates:
        return ""
    # Of nested lambdas on one line, the one that starts last is the innermost.
    node = max(candidates, key=lambda found: (found.lineno, found.col_offset))
    text = ast.get_source_segment("".join(linecache.getlines(code.co_filename)), node) or ""
    return " ".join(text.split()) if isinstance(node, ast.Lambda) else text


@lru_cache(maxsize=32)
def _functions(filename: str) -> tuple[ast.Lambda | ast.FunctionDef, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Lambda | ast.FunctionDef))


def _matches(node: ast.Lambda | ast.FunctionDef, code: CodeType) -> bool:
    """Whether the node starts on the code's first line and has its parameters."""
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return (
        _first_line(node) == code.co_firstlineno
        and isinstance(node, ast.Lambda) == (code.co_name == "<lambda>")
        and names == list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    )


def _first_line(node: ast.Lambda | ast.FunctionDef) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _encloses(node: ast.Lambda | ast.FunctionDef, code: CodeType) -> bool:
    """Whether all of the code's instructions are inside the node."""
    start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    for line, end_line, column, end_column in code.co_positions():
        # The first instructions have the position of the whole definition, column 0 to 0.
        if line is None or end_line is None or column is None or end_column is None or (column, end_column) == (0, 0):
            continue
        if (line, column) < start or (end_line, end_column) > end:
            return False
    return True
