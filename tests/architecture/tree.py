"""Reads a source tree for the checks: its files, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
IGNORED = {".git", ".venv", "data", "dist", "results", "node_modules", "__pycache__"}


@dataclass(frozen=True)
class Import:
    """`module` as it is written absolutely, with the imported name where that may be a module itself."""

    path: Path
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} imports {self.module}"


def files(root: Path, pattern: str = "*") -> Iterator[Path]:
    """The files of a project, by relative path, without what git does not keep."""
    for path in sorted(root.rglob(pattern)):
        relative = path.relative_to(root)
        hidden = any(part in IGNORED or part.endswith("_cache") for part in relative.parts)
        if path.is_file() and not hidden and ".hypothesis" not in relative.parts:
            yield relative


def imports(root: Path, under: str = "src") -> Iterator[Import]:
    """Every import, wherever it stands: at the top, in a function, for the type checker only."""
    for path in files(root, "*.py"):
        if path.parts[0] != under:
            continue
        for node in ast.walk(ast.parse((root / path).read_text())):
            if isinstance(node, ast.Import):
                yield from (Import(path, node.lineno, name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                module = absolute(path, node)
                yield from (Import(path, node.lineno, f"{module}.{name.name}") for name in node.names)


def absolute(path: Path, node: ast.ImportFrom) -> str:
    """Return the module that an import names, with the leading dots resolved."""
    if node.level == 0:
        return node.module or ""
    package = path.parts[1 : len(path.parts) - node.level]
    return ".".join((*package, *([node.module] if node.module else [])))
