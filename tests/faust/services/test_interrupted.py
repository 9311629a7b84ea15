"""Ctrl-C before a worker listens to it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import potok.faust.services.interrupted
raise {error}
"""


@pytest.mark.parametrize(
    ("command", "error", "rendered"),
    [
        ("worker", "KeyboardInterrupt", ""),
        ("agents", "KeyboardInterrupt", "KeyboardInterrupt"),
        ("worker", "ValueError", "ValueError"),
    ],
)
def test_only_a_worker_that_is_interrupted_shows_nothing(
    tmp_path: Path, command: str, error: str, rendered: str
) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM.format(error=error))
    done = subprocess.run(
        [sys.executable, "shop.py", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stderr.splitlines() or [""])[-1] == rendered
    assert done.returncode == (-signal.SIGINT if error == "KeyboardInterrupt" else 1)
