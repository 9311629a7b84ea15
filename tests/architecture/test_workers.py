"""Tests that share a session, a server or a browser stay together when several workers run all tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import os
from pathlib import Path

import pytest

@pytest.mark.parametrize("number", range(12))
@pytest.mark.xdist_group("shared")
def test_something(number):
    Path(__file__).with_name(f"{number}.txt").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_tests_of_one_group_run_in_one_worker(tmp_path: Path) -> None:
    (tmp_path / "test_shared.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadgroup"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    workers = [path.read_text() for path in tmp_path.glob("*.txt")]
    # With pytest 9.2, pytest-xdist 3.8 forgets the groups and says nothing.
    assert (len(workers), len(set(workers))) == (12, 1)
