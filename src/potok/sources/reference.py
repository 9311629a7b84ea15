"""Generate the options of the page on the gateway from the listeners.

python -m potok.sources.reference docs/gateway.md
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from potok.sources.config import KINDS
from potok.sources.listener import ListenerSpec
from potok.sources.overload import Overload

BEGIN, END = "<!-- options: generated, see potok.sources.reference -->", "<!-- end of options -->"
_COMMON = [each.name for each in fields(ListenerSpec)]


def options() -> str:
    """Return the options of all listeners in Markdown."""
    shared = [each for each in fields(ListenerSpec) if each.name != "name"]
    parts = ["## Options of every listener", _table(shared)]
    for kind, spec in KINDS.items():
        own = [each for each in fields(spec) if each.name not in _COMMON]
        parts += [f'## `type = "{kind}"`', " ".join((inspect.getdoc(spec) or "").split()), _table(own)]
    return "\n\n".join(parts)


def with_options(page: str) -> str:
    """Return a page with its options as they are in the code."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{options()}\n\n{END}{rest.partition(END)[2]}"


def _table(listed: list[Field[Any]]) -> str:
    rows = ["| option | default | meaning |", "|---|---|---|"]
    rows += [f"| `{each.name}` | {_default(each)} | {each.metadata['doc']} |" for each in listed]
    return "\n".join(rows)


def _default(option: Field[Any]) -> str:
    value = option.default
    if value is MISSING:
        return "required"
    if isinstance(value, Overload):
        return "see above"
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return "`[" + ", ".join(f'"{each}"' for each in value) + "]`"
    return f"`{value:_}`" if isinstance(value, int) else f'`"{value}"`'


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_options(page.read_text()))
