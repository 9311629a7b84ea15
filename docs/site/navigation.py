"""The order of the pages. Each page of `docs/` has exactly one place in it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

FROM_THE_ROOT = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
    "examples/README.md": "examples/index.md",
    **{
        f"examples/{name}/README.md": f"examples/{name}.md"
        for name in (
            "clickstream",
            "iot",
            "leaderboard",
            "rate_limit",
            "anti_fraud",
            "dynamic_pricing",
            "checkout",
            "derived_systems",
            "notebook",
        )
    },
}
"""Pages that are not in `docs/`, with the name that each has on the site."""

SECTIONS: dict[str, list[str]] = {
    "Start": ["start/install.md", "start/first-minute.md", "start/tutorial.md"],
    "Examples": [page for page in FROM_THE_ROOT.values() if page.startswith("examples/")],
    "Concepts": [
        "streams-and-tables.md",
        "time.md",
        "promise.md",
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
        "how-to/index.md",
        "how-to/late-data.md",
        "how-to/deduplicate.md",
        "how-to/top-n.md",
        "how-to/enrich.md",
        "how-to/alert.md",
        "how-to/rate-limit.md",
        "how-to/schema-evolution.md",
        "how-to/change-a-program.md",
        "how-to/reprocess.md",
        "testing.md",
        "how-to/continuous-integration.md",
        "replay.md",
        "dataframes.md",
        "webhooks.md",
        "consumers.md",
    ],
    "Coming from": [
        "coming-from/kafka-streams.md",
        "coming-from/ksqldb.md",
        "faust.md",
        "coming-from/flink.md",
        "coming-from/spark.md",
        "coming-from/storm.md",
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
        "how-to/deploy.md",
        "deployment.md",
        "operating.md",
        "console.md",
        "kafka.md",
        "cluster.md",
        "security.md",
        "faults.md",
        "how-to/back-up-and-reshard.md",
        "how-to/move-to-kafka.md",
        "how-to/upgrade.md",
        "how-to/troubleshoot.md",
        "capacity.md",
        "performance.md",
    ],
    "Project": ["versioning.md", "changelog.md", "contributing.md", "reporting.md"],
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
    body = re.sub(r"^```.*?^```", "", text.partition("\n")[2], flags=re.DOTALL | re.MULTILINE)
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", body)]
    prose = next(part for part in paragraphs if part and not part.startswith(("#", "!", "<", "|", "- ")))
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(prose.split())).replace("**", "")
    return re.split(r"(?<=[a-z)`*])\. ", plain + " ", maxsplit=1)[0].rstrip(" .:") + "."
