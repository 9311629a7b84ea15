"""Generate the table of settings from `potok.settings`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from itertools import pairwise

from potok import settings
from potok.duration import show_ms

BEGIN, END = "<!-- settings: generated, see docs/generate/settings_page.py -->", "<!-- end of settings -->"


def with_settings(page: str) -> str:
    """Return the page with the table as it is in the code."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


def table() -> str:
    """Return the table of all settings."""
    rows = ["| setting | variable | default | meaning |", "|---|---|---|---|"]
    meanings = dict(_meanings())
    for field in fields(settings.Settings):
        name = field.name.removesuffix("_ms")
        default = None if field.default is MISSING else field.default
        if isinstance(default, int) and not isinstance(default, bool) and field.name.endswith("_ms"):
            text = show_ms(default)
        else:
            text = str(default).lower() if isinstance(default, bool) else str(default or "")
        is_table = field.default_factory is not MISSING and isinstance(field.default_factory(), Mapping)
        shown = f"`[{name}]`" if is_table else f"`{name}`"
        variable = f"`{settings.PREFIX}{name.upper()}_...`" if is_table else f"`{settings.PREFIX}{name.upper()}`"
        if field.name == "spark":
            variable = ""
        rows.append(f"| {shown} | {variable} | {f'`{text}`' if text else ''} | {meanings[field.name]} |")
    return "\n".join(rows)


def _meanings() -> Iterator[tuple[str, str]]:
    """Yield each setting with the text below it in the source."""
    tree = ast.parse(inspect.getsource(settings))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings")
    for declared, documented in pairwise(body):
        match declared, documented:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split()).replace("|", "\\|")
