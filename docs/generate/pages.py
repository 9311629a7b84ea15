"""The generated pages, and what generates each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.generate import api, cli_page, http_page, settings_page

DOCS = Path(__file__).parents[1]

PAGES: dict[str, Callable[[], str]] = {
    "reference/api.md": api.dsl_page,
    "reference/library.md": api.library_page,
    "reference/cli.md": cli_page.page,
    "reference/http.md": http_page.page,
    "settings.md": lambda: settings_page.with_settings((DOCS / "settings.md").read_text()),
}
