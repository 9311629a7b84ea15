"""`docs/sql.md`: the statements of the page, typed one after the other, print what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from potok.cli.output import print_error
from potok.cli.prompt.display import Drawn
from potok.cli.prompt.script import Script
from potok.cli.prompt.targets.local import Here
from potok.errors import PotokError
from potok.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
BLOCK = re.compile(r"```sql\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


def printed(script: Script, text: str) -> str:
    """What a block prints: its results, or the error that ends it."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            script.run(text)
        except PotokError as error:
            with contextlib.redirect_stderr(err):
                print_error(error)
    return "".join(f"{line.rstrip()}\n" for line in (out.getvalue() + err.getvalue()).splitlines())


def test_the_page_prints_what_it_says(spark: Any, tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) > 10
    here = Here.opened(Settings(broker=f"file:{tmp_path}"))
    script = Script(here, Drawn(), settles=True)
    try:
        for text, rendered in blocks:
            assert printed(script, text) == rendered, text
    finally:
        here.close()
