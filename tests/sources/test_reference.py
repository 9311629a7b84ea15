"""The page on the gateway lists the options of the code."""

from __future__ import annotations

from pathlib import Path

from potok.sources.config import KINDS
from potok.sources.reference import with_options

PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"


def test_the_page_lists_every_option() -> None:
    page = PAGE.read_text()
    assert page == with_options(page), "run python -m potok.sources.reference docs/gateway.md"
    assert all(f'## `type = "{kind}"`' in page for kind in KINDS)
