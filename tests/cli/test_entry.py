"""Ctrl-C, and missing packages, while the command is being imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, sys

wanted = sys.argv[1]

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from potok.cli.entry import main
sys.argv[1:] = ["topics", "list"]
main()
"""


@pytest.mark.parametrize("module", ["typer", "potok.settings", "potok.cli.log.topics", "potok.log.open", "pyarrow"])
def test_interrupting_an_import_prints_no_traceback(tmp_path: Path, module: str) -> None:
    command = [sys.executable, "-c", PROGRAM, module]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


MISSING = """
import sys

sys.modules[sys.argv.pop(1)] = None
from potok.cli.entry import main
main()
"""


@pytest.mark.parametrize("words", [["topics", "list"], ["describe", "program.py"]])
def test_a_missing_dependency_of_potok_is_an_error_with_a_hint(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "program.py").write_text("from potok import Consumer\n")
    command = [sys.executable, "-c", MISSING, "lmdb", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'error: Potok needs the Python module "lmdb", which is not installed' in done.stderr
    assert "make setup" in done.stderr and "Traceback" not in done.stderr


def test_a_missing_dependency_of_a_program_is_an_error_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import no_such_package\n")
    command = [sys.executable, "-c", MISSING, "no_such_package", "describe", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert '"program.py" cannot be loaded: ModuleNotFoundError' in done.stderr and "program.py:1" in done.stderr
