"""What `dir()` and the completion of an editor show of public modules: their public names, and nothing else."""

from __future__ import annotations

import ast
import importlib

import pytest

from architecture.tree import ROOT

SOURCE = ROOT / "src" / "potok"
PUBLIC = (
    "potok",
    "potok.faust",
    "potok.faust.models",
    "potok.faust.serializers",
    "potok.faust.types",
    "potok.faust.web",
    "potok.expressions.functions",
    "potok.log",
    "potok.records",
    "potok.testing",
    "potok.dead_letters",
)


@pytest.mark.parametrize("name", PUBLIC)
def test_dir_shows_the_public_names(name: str) -> None:
    module = importlib.import_module(name)
    assert dir(module) == sorted(module.__all__)
    assert all(getattr(module, public, None) is not None for public in dir(module))


def test_names_that_are_imported_later_are_not_shown() -> None:
    import potok
    import potok.cli.main  # makes `cli` an attribute of the package

    assert "cli" in vars(potok) and "cli" not in dir(potok)


def _visible_catch_alls() -> list[str]:
    """The places where a module or a class accepts any attribute in the eyes of a type checker."""
    found = []
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))):
            defined = {part.name for part in scope.body if isinstance(part, ast.FunctionDef)}
            if defined & {"__getattr__", "__setattr__"} and not getattr(scope, "name", "").startswith("_"):
                found.append(f"{path.relative_to(SOURCE)}: {getattr(scope, 'name', 'module')}")
    return found


def test_type_checkers_find_typos_in_attributes() -> None:
    """A `__getattr__` that a program needs is defined under `if not TYPE_CHECKING`."""
    traced = ["expressions/tracing/proxy.py: Proxy"]  # the argument of every traced function, whatever its type
    assert _visible_catch_alls() == traced
