"""The page on change data capture lists the options of the code."""

from __future__ import annotations

from pathlib import Path

from potok.sources.cdc.reference import with_options

PAGE = Path(__file__).parents[3] / "docs" / "cdc.md"


def test_the_page_lists_every_option() -> None:
    page = PAGE.read_text()
    assert page == with_options(page), "run python -m potok.sources.cdc.reference docs/cdc.md"
    assert "| `heartbeat` |" in page
