"""What `dir()` and the completion of an editor show of public modules: their public names, and nothing else."""

from __future__ import annotations

import importlib

import pytest

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
