"""Ctrl-C while the command is being imported."""

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


@pytest.mark.parametrize("module", ["typer", "potok.settings", "potok.cli.topics", "potok.log.open", "pyarrow"])
def test_whoever_interrupts_an_import_sees_no_stack_trace(tmp_path: Path, module: str) -> None:
    command = [sys.executable, "-c", PROGRAM, module]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
