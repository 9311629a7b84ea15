"""The types of the DSL, as mypy and pyright see them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "typed_programs"
ACCEPTED, REFUSED = PROGRAMS / "accepted.py", PROGRAMS / "refused.py"

Reported = dict[int, str]
"""The messages of a type checker by line."""


def mypy(program: Path) -> Reported:
    options = [
        "--strict",
        "--no-error-summary",
        "--no-pretty",
        "--hide-error-context",
        "--config-file",
        "pyproject.toml",
    ]
    ran = _ran([sys.executable, "-m", "mypy", *options, str(program)], MYPYPATH=str(ROOT / "src"))
    found = re.findall(rf"{program.name}:(\d+): error: (.*)", ran.stdout)
    assert ran.returncode in (0, 1) and bool(found) == bool(ran.returncode), ran.stdout + ran.stderr
    return {int(line): message for line, message in found}


def pyright(program: Path) -> Reported:
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(program)]
    ran = _ran(command, PYRIGHT_PYTHON_IGNORE_WARNINGS="1", PYTHONPATH=str(ROOT / "src"))
    try:
        answer = json.loads(ran.stdout)
    except json.JSONDecodeError:
        reason = f"pyright does not start here: {(ran.stderr or ran.stdout).strip()[-500:]}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    errors = [found for found in answer["generalDiagnostics"] if found["severity"] == "error"]
    return {found["range"]["start"]["line"] + 1: found["message"] for found in errors}


def _ran(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


CHECKERS = pytest.mark.parametrize("check", [mypy, pyright])


@CHECKERS
def test_a_typed_program_is_accepted_with_the_types_it_asserts(check: Callable[[Path], Reported]) -> None:
    assert check(ACCEPTED) == {}


@CHECKERS
def test_every_error_is_reported_on_its_line_and_nothing_else(check: Callable[[Path], Reported]) -> None:
    lines = REFUSED.read_text().splitlines()
    expected = {number for number, line in enumerate(lines, 1) if line.endswith("# error")}
    found = check(REFUSED)
    assert {number: found[number] for number in found.keys() - expected} == {}
    assert [lines[number - 1] for number in sorted(expected - found.keys())] == []
