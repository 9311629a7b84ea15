"""Files are small, have names that say something, and `__init__.py` holds public names only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from architecture.tree import ROOT, files

LONGEST = 400
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "base", "manager", "impl"}
LAZY = {"__getattr__", "__dir__"}


def long_files(root: Path) -> list[str]:
    lengths = {path: len((root / path).read_text().splitlines()) for path in files(root, "*.py")}
    return [f"{path} has {length} lines" for path, length in lengths.items() if length > LONGEST]


def empty_names(root: Path) -> list[str]:
    return [str(path) for path in files(root, "*.py") if _words(path) & EMPTY_NAMES]


def busy_inits(root: Path) -> list[str]:
    """Statements that neither bring in names, nor list them, nor find them on first use."""
    found = []
    for path in files(root, "__init__.py"):
        if path.parts[0] == "src":
            body = ast.parse((root / path).read_text()).body
            found += [f"{path}:{node.lineno}" for node in body if not _belongs(node)]
    return found


def _words(path: Path) -> set[str]:
    return {word for part in path.parts for word in part.removesuffix(".py").lower().split("_")}


def _belongs(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body):
            return all(isinstance(line, ast.Import | ast.ImportFrom) for line in body)
        case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=ast.Name(id="TYPE_CHECKING")), body=body, orelse=[]):
            # A type checker that saw the function would take every name for one that exists.
            return all(isinstance(line, ast.FunctionDef) and _belongs(line) for line in body)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name.startswith("_")
        case ast.FunctionDef(name=name):
            return name in LAZY
    return False


def test_no_file_is_longer_than_the_limit() -> None:
    assert long_files(ROOT) == []


def test_no_file_has_an_empty_name() -> None:
    assert empty_names(ROOT) == []


def test_init_files_hold_public_names_only() -> None:
    assert busy_inits(ROOT) == []


def test_a_file_one_line_too_long_is_found(tmp_path: Path) -> None:
    (tmp_path / "whole.py").write_text("x = 1\n" * LONGEST)
    (tmp_path / "tail.py").write_text("x = 1\n" * (LONGEST + 1))
    assert long_files(tmp_path) == ["tail.py has 401 lines"]


@pytest.mark.parametrize("name", ["utils.py", "json_helpers.py", "common/thing.py", "state_manager.py", "base.py"])
def test_an_empty_name_is_found(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    (tmp_path / "database.py").write_text("")
    assert empty_names(tmp_path) == [name]


@pytest.mark.parametrize(
    ("text", "violations"),
    [
        ('"""Room."""\n\nfrom potok.log.open import open_broker\n\n__all__ = ["open_broker"]\n', 0),
        ("def __getattr__(name): ...\n", 0),
        ("if TYPE_CHECKING:\n    import potok.log\n", 0),
        ("def open_broker(): ...\n", 1),
        ("class Broker: ...\n", 1),
        ("limit = 3\n", 1),
        ("if True:\n    limit = 3\n", 1),
    ],
)
def test_code_in_an_init_file_is_found(tmp_path: Path, text: str, violations: int) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "__init__.py").write_text(text)
    assert len(busy_inits(tmp_path)) == violations
