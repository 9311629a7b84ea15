"""The page for those who come from Faust: each name in its table is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import potok.app as faust
from potok.app.channel import Channel
from potok.app.windowed import WindowedTable, WindowSet

PAGE = (Path(__file__).parents[2] / "docs" / "faust.md").read_text()

HOLDERS: dict[str, Any] = {
    "app": faust.App,
    "Agent": faust.Agent,
    "Channel": Channel,
    "Event": faust.Event,
    "Record": faust.Record,
    "Stream": faust.Stream,
    "Table": faust.Table,
    "Topic": faust.Topic,
    "WindowSet": WindowSet,
}


def names() -> list[str]:
    rows = PAGE.partition("## Every name")[2].splitlines()
    firsts = [row.split("|")[1] for row in rows if row.startswith("| `")]
    return [name for first in firsts for name in re.findall(r"`([A-Za-z_.]+)`", first)]


def test_the_table_has_names() -> None:
    assert len(names()) > 40


@pytest.mark.parametrize("name", names())
def test_a_name_of_the_table_is_there(name: str) -> None:
    holder, dot, member = name.partition(".")
    found = hasattr(HOLDERS[holder], member) if dot else hasattr(faust, name) or hasattr(WindowedTable, name)
    assert found, name
