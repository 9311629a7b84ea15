"""A broker in a directory of its own for each test, and programs that run next to it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.failpoint import VARIABLE

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    opened = EmbeddedBroker(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a program in a process of its own; `DATA` is the broker's directory there."""
    running: list[subprocess.Popen[str]] = []

    def begin(program: str, failpoint: str = "") -> subprocess.Popen[str]:
        prelude = f"DATA = {str(tmp_path / 'data')!r}\nfrom beside import *\n"
        environment = {**os.environ, VARIABLE: failpoint, "PYTHONPATH": str(Path(__file__).parent)}
        process = subprocess.Popen(
            [sys.executable, "-c", prelude + textwrap.dedent(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def run(start: Callable[..., subprocess.Popen[str]]) -> Run:
    """Run a program to its end, or to the failpoint that kills it."""

    def finish(program: str, failpoint: str = "") -> subprocess.CompletedProcess[str]:
        process = start(program, failpoint)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return finish
