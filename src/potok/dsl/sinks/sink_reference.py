"""Generate the options of the page on sinks from the methods that create them.

python -m potok.dsl.sinks.sink_reference docs/sinks.md
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from potok.dsl.sinks.external_sinks import ExternalSinks
from potok.dsl.sinks.lake_sinks import LakeSinks
from potok.dsl.sinks.message_sinks import MessageSinks
from potok.dsl.sinks.server_sinks import MaintainedSinks
from potok.dsl.sinks.spark_sinks import SparkSinks

BEGIN, END = "<!-- options: generated, see potok.dsl.sinks.sink_reference -->", "<!-- end of options -->"

SINKS: dict[str, Callable[..., Any]] = {
    name: method
    for each in (ExternalSinks, MaintainedSinks, LakeSinks, SparkSinks, MessageSinks)
    for name, method in vars(each).items()
    if name.startswith("to_")
}

_ARGUMENT = re.compile(r"^    (\w+): ", re.MULTILINE)


def options() -> str:
    """Return the options of all sinks in Markdown."""
    return "\n\n".join(f"## `{name}`\n\n{_table(method)}" for name, method in SINKS.items())


def with_options(page: str) -> str:
    """Return a page with its options as they are in the code."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{options()}\n\n{END}{rest.partition(END)[2]}"


def _table(method: Callable[..., Any]) -> str:
    text = inspect.getdoc(method) or ""
    first, arguments = text.partition("\n\n")[0], _arguments(text.partition("Args:\n")[2])
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for name, parameter in inspect.signature(method).parameters.items():
        if name != "self":
            rows.append(f"| `{name}` | {_default(parameter.default)} | {arguments[name]} |")
    return f"{' '.join(first.split())}\n\n" + "\n".join(rows)


def _arguments(text: str) -> dict[str, str]:
    """Return the descriptions of the arguments in a docstring."""
    parts = _ARGUMENT.split(text)[1:]
    return {name: " ".join(meaning.split()) for name, meaning in zip(parts[::2], parts[1::2], strict=True)}


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    if value is None or value in ((), ""):
        return ""
    if isinstance(value, StrEnum):
        return f'`"{value.value}"`'
    if isinstance(value, int) and not isinstance(value, bool):
        return f"`{value:_}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_options(page.read_text()))
