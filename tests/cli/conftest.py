"""Runs `potok` in this process, on a log of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from potok.cli.main import app


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Potok = Callable[..., Outcome]


@pytest.fixture
def potok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Potok:
    """Call it with the words of the command line; `stdin=` is what is typed."""
    monkeypatch.chdir(tmp_path)
    for name in ("POTOK_BROKER", "POTOK_DRIVER_MEMORY"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str, stdin: str = "") -> Outcome:
        result = CliRunner().invoke(app, list(words), input=stdin, prog_name="potok")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run
