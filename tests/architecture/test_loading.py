"""Importing Potok, and asking it for help, loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pyspark", "pyarrow", "pandas", "numpy", "fastapi")


def loaded_by(program: str) -> set[str]:
    """The heavy packages in memory after `program`, in a fresh interpreter."""
    report = f"\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program + report], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "program",
    [
        "import potok",
        "import potok.settings, potok.errors, potok.spark.session",
        "import sys\nfrom potok.cli.main import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass",
    ],
)
def test_nothing_heavy_is_loaded(program: str) -> None:
    assert loaded_by(program) == set()


def test_a_heavy_import_is_noticed() -> None:
    assert loaded_by("import numpy") == {"numpy"}
