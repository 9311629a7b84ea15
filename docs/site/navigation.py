"""The order of the pages. Each page of `docs/` has exactly one place in it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

FROM_THE_ROOT = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages that are not in `docs/`, with the name that each has on the site."""

SECTIONS: dict[str, list[str]] = {
    "Concepts": [
        "streams-and-tables.md",
        "time.md",
        "windows.md",
        "joins.md",
        "guarantees.md",
        "dead-letters.md",
        "logs.md",
        "state.md",
        "own-steps.md",
        "events.md",
        "event-sourcing.md",
        "cqrs.md",
        "sagas.md",
        "event-patterns.md",
        "architecture.md",
        "glossary.md",
    ],
    "How-to": [
        "testing.md",
        "replay.md",
        "dataframes.md",
        "webhooks.md",
        "consumers.md",
    ],
    "Coming from": [
        "faust.md",
    ],
    "Reference": [
        "reference/api.md",
        "reference/library.md",
        "sql.md",
        "reference/sql-statements.md",
        "sql-functions.md",
        "sinks.md",
        "gateway.md",
        "cdc.md",
        "formats.md",
        "settings.md",
        "reference/cli.md",
        "server.md",
        "reference/http.md",
        "metrics.md",
        "errors.md",
        "exit-codes.md",
    ],
    "Operations": [
        "operating.md",
        "console.md",
        "kafka.md",
        "cluster.md",
        "security.md",
        "faults.md",
    ],
    "Project": ["changelog.md", "contributing.md"],
}


def source_of(page: str) -> Path:
    """Return the file of a page, relative to the root of the repository."""
    named = {there: here for here, there in FROM_THE_ROOT.items()}
    return Path(named.get(page, f"docs/{page}"))


def pages() -> list[str]:
    """Return all pages in their order."""
    return ["index.md", *(page for listed in SECTIONS.values() for page in listed)]


def title_of(text: str) -> str:
    """Return the heading of a page, without what follows a colon."""
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    if heading is None:
        raise ValueError("a page needs a heading")
    return heading[1].partition(":")[0].replace("`", "")


def summary_of(text: str) -> str:
    """Return the first sentence of a page."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text.partition("\n# ")[2] or text)]
    prose = next(part for part in paragraphs if part and part[0] not in "#!<`|-[")
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(prose.split()))
    return re.split(r"(?<=[a-z)`*])[.:] ", plain + " ", maxsplit=1)[0].rstrip(" .:").replace("**", "") + "."
