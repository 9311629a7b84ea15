"""Modules under Faust's names: whatever the page says to be the same is imported by its path."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from faust.faust_names import SAME, rows
from potok.errors import PotokError
from potok.faust.faust_paths import PATHS

MODULES = ("faust", "types", "web", "cli", "models.fields", "serializers.codecs")


def test_every_name_of_a_module_that_is_the_same_is_imported_by_its_path() -> None:
    names = [row.name.rpartition(".")[::2] for row in rows() if row.here == SAME]
    reported = [(group, name) for group, name in names if group in MODULES]
    assert len(reported) > 60
    for group, name in reported:
        path = "potok.faust" if group == "faust" else f"potok.faust.{group}"
        exec(f"from {path} import {name}", {})


@pytest.mark.parametrize("path", PATHS)
def test_every_module_has_what_its_row_says(path: str) -> None:
    module = import_module(f"potok.faust.{path}")
    reported = {given.partition("=")[0] for text in PATHS[path].values() for given in text.split()}
    assert set(module.__all__) == reported
    assert dir(module) == sorted(reported)
    for name in reported:
        assert getattr(module, name) is not None


def test_names_are_those_of_the_package() -> None:
    from potok.faust.exceptions import FaustError, ValidationError  # type: ignore[import-not-found]
    from potok.faust.models.base import Model  # type: ignore[import-not-found]

    from potok.faust import Record

    assert (Model, FaustError) == (Record, PotokError)
    assert issubclass(ValidationError, FaustError)


def test_what_is_refused_says_what_to_do_instead() -> None:
    with pytest.raises(ImportError, match="Monitor is not supported"):
        exec("from potok.faust.sensors import Monitor", {})
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        exec("from potok.faust.streams import Nothing", {})


def test_a_module_is_found_by_who_has_imported_nothing_else() -> None:
    program = "import potok.faust.cli.base as base; import potok.faust.models.fields; print(base.option.__name__)"
    reported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert reported.stdout == "option\n"
