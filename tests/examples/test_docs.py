"""The pages of `docs/`: every example prints what the page says, and every picture is the one that is drawn."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def examples() -> list[Any]:
    return [
        pytest.param(code, printed, id=f"{page.relative_to(DOCS).with_suffix('')}-{number}")
        for page in sorted(DOCS.rglob("*.md"))
        for number, (code, printed) in enumerate(EXAMPLE.findall(page.read_text()), 1)
    ]


@pytest.mark.parametrize(("code", "printed"), examples())
def test_an_example_prints_what_the_page_says(spark: Any, code: str, printed: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<docs>", "exec", dont_inherit=True), {"__name__": "__docs__"})
    assert out.getvalue() == printed


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_every_example_is_run(page: Path) -> None:
    text = page.read_text()
    assert text.count("```python") == len(EXAMPLE.findall(text))


def test_the_pictures_are_as_they_are_drawn() -> None:
    spec = importlib.util.spec_from_file_location("drawings", DOCS / "drawings.py")
    assert spec is not None and spec.loader is not None
    drawings = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["drawings"] = drawings
    spec.loader.exec_module(drawings)
    for name, draw in drawings.PICTURES.items():
        assert (DOCS / f"{name}.svg").read_text() == draw().svg(), f"run python docs/drawings.py: {name}"
