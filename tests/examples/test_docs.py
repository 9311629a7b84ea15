"""The pages of `docs/`: every example prints what the page says, and every picture is the one that is drawn."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from docs import drawings, example_drawings

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


@pytest.mark.parametrize("module", [drawings, example_drawings], ids=lambda module: module.__name__)
def test_the_pictures_are_as_they_are_drawn(module: Any) -> None:
    for name, draw in module.PICTURES.items():
        assert (DOCS / f"{name}.svg").read_text() == draw().svg(), f"run python -m {module.__name__}: {name}"
