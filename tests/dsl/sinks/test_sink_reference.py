"""The page on sinks lists the options of the code."""

from __future__ import annotations

from pathlib import Path

from potok import Stream
from potok.dsl.sinks.sink_reference import SINKS, with_options

PAGE = Path(__file__).parents[3] / "docs" / "sinks.md"


def test_the_page_lists_every_option_of_every_sink() -> None:
    page = PAGE.read_text()
    assert page == with_options(page), "run python -m potok.dsl.sinks.sink_reference docs/sinks.md"
    sinks = {name for name in dir(Stream) if name.startswith("to_")} - {"to_table"}
    assert sinks == set(SINKS)
