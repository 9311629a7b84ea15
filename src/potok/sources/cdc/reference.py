"""Generate the options of the page on change data capture.

python -m potok.sources.cdc.reference docs/cdc.md
"""

from __future__ import annotations

import sys
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from potok.topology.capture import Capture

BEGIN, END = "<!-- options: generated, see potok.sources.cdc.reference -->", "<!-- end of options -->"


def options() -> str:
    """Return the options of a capture in Markdown."""
    rows = ["| option | default | meaning |", "|---|---|---|"]
    rows += [f"| `{each.name}` | {_default(each)} | {each.metadata['doc']} |" for each in fields(Capture)]
    return "\n".join(rows)


def with_options(page: str) -> str:
    """Return a page with its options as they are in the code."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{options()}\n\n{END}{rest.partition(END)[2]}"


def _default(option: Field[Any]) -> str:
    value = option.default
    if value is MISSING:
        return "required"
    if value == "":
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:_}`" if isinstance(value, int) else f'`"{value}"`'


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_options(page.read_text()))
