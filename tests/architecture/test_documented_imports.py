"""Documents and examples import public names only."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import potok
from architecture.tree import ROOT

PUBLIC = re.compile(r"potok(\.(testing|sinks|sources|patterns|faust|spark)(\.\w+)*)?")
IMPORT = re.compile(r"^\s*(?:from (potok[\w.]*) import ([\w, ]+)|import (potok[\w.]*))", re.MULTILINE)


def imported(path: Path) -> list[tuple[str, list[str]]]:
    found = IMPORT.findall(path.read_text())
    return [(module or plain, re.findall(r"\w+", re.sub(r" as \w+", "", names))) for module, names, plain in found]


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("examples/**/*.py"))]


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_only_public_modules_are_imported(path: Path) -> None:
    modules = {module for module, _ in imported(path)}
    assert {module for module in modules if not PUBLIC.fullmatch(module)} == set()


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_only_exported_names_are_imported(path: Path) -> None:
    missing = []
    for module, names in imported(path):
        if PUBLIC.fullmatch(module) and names:
            exported = getattr(importlib.import_module(module), "__all__", None)
            missing += [f"{module}.{name}" for name in names if exported is not None and name not in exported]
    assert missing == []


def test_exported_errors_are_one_tree_and_are_documented() -> None:
    classes = {name: getattr(potok, name) for name in potok.__all__}
    errors = {
        name: kind for name, kind in classes.items() if isinstance(kind, type) and issubclass(kind, BaseException)
    }
    page = (ROOT / "docs" / "errors.md").read_text()
    assert 10 <= len(errors) <= 15
    for name, kind in errors.items():
        assert name.endswith("Error")
        assert issubclass(kind, potok.PotokError)
        assert f"| `{name}` |" in page
