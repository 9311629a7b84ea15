"""A process that ran a query ends without a word about it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import potok

PROGRAM = """
import sys
import potok

builder = potok.StreamsBuilder("counting")
builder.stream("orders", value="user string").group_by("user").count(name="counts")
potok.run(builder, broker=sys.argv[1], until_end=True)
print("came to the end", flush=True)
potok.run(builder, broker=sys.argv[1])
print("was stopped", flush=True)
"""


def send(directory: Path, user: str) -> None:
    with potok.Producer(directory) as producer:
        producer.send("orders", {"user": user})


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_neither_the_end_of_the_input_nor_an_interrupt_leaves_a_traceback(tmp_path: Path) -> None:
    send(tmp_path, "anna")
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "POTOK_DRIVER_MEMORY": "512m"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "came to the end\n"
        send(tmp_path, "bela")
        counts = potok.open_tables(tmp_path, "counting")["counts"]
        while counts.get("bela") is None:
            assert process.poll() is None, "the second run must not end"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, "was stopped\n", "")
