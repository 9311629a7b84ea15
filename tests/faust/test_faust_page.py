"""The page for those who come from Faust: its table is made from the code, and each name in it means what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import potok.faust as faust
from faust.faust_names import DIFFERS, NAMES, holders, is_there, rows, table
from potok.errors import PotokError
from potok.faust.unsupported import REFUSED

PAGE = (Path(__file__).parents[2] / "docs" / "faust.md").read_text()


def test_the_table_of_the_page_is_that_of_the_code() -> None:
    assert table() in PAGE, "run PYTHONPATH=tests python -m faust.faust_names, and put it under All names"


def test_there_are_hundreds_of_names_and_each_is_there_or_says_what_to_do_instead() -> None:
    found = list(rows())
    assert len(found) > 400
    assert len({row.name for row in found}) == len(found)
    assert all(row.differs for row in found if row.here == "refused")


def test_nothing_is_said_of_a_name_that_is_not_in_the_table() -> None:
    known = {f"{group}.{name}" for group, names in NAMES.items() for name in names}
    assert sorted(set(DIFFERS) - known) == []
    groups = {"WindowedTable": "WindowWrapper"}
    refused = {f"{groups.get(group, group)}.{name}" for group, names in REFUSED.items() for name in names}
    assert sorted(refused - known) == ["WindowWrapper.join", "WindowWrapper.left_join"]


def test_what_differs_is_said_of_names_that_are_there() -> None:
    found = holders()
    assert [name for name in DIFFERS if not is_there(found[name.rpartition(".")[0]], name.rpartition(".")[2])] == []


@pytest.mark.parametrize("group", ["App", "Topic", "Channel", "Agent", "Table", "WindowWrapper", "Service"])
def test_a_name_that_is_refused_raises_with_what_to_do_instead(group: str) -> None:
    holder: Any = holders()[group]
    refused = REFUSED["WindowedTable" if group == "WindowWrapper" else group]
    names = [name for name in refused if not is_there(holder, name)]
    assert names
    for name in names:
        with pytest.raises(PotokError, match="is not supported") as caught:
            getattr(holder, name)
        assert caught.value.hint == refused[name]


def test_a_name_of_the_package_that_is_refused_cannot_be_imported_and_says_why() -> None:
    for name in REFUSED["faust"]:
        with pytest.raises(ImportError, match="is not supported"):
            getattr(faust, name)
