"""Kill the worker of an app at durable steps, start it again, and compare what it counted with plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.snapshots.tables import Tables
from potok.testing.outputs import read_outputs

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(400)]

RECORDS = 2_000
BATCH = 300


def run(directory: Path, failpoint: str = "") -> int:
    finished = subprocess.run(
        [sys.executable, "-m", "tests.kill.app_program", f"file:{directory}", str(BATCH)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "POTOK_FAILPOINT": failpoint},
        timeout=180,
        capture_output=True,
        check=False,
    )
    return finished.returncode


def test_counts_and_output_are_exact_after_kills_on_both_sides_of_a_commit(tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    broker.create_topic("numbers", 1)
    broker.append("numbers", [LogRecord(None, str(number).encode(), number) for number in range(RECORDS)], 0)
    for failpoint in ("log.publish.before:2", "log.publish.committed:2"):
        assert run(tmp_path, failpoint) != 0, f"{failpoint} was never reached"
    assert run(tmp_path) == 0
    counts: Counter[str] = Counter()
    sums: defaultdict[str, int] = defaultdict(int)
    for number in range(RECORDS):
        key = f"k{number % 50}"
        counts[key] += 1
        sums[key] += number + counts[key]
    tables = Tables(broker, "killed-app")
    assert tables["counts"].all() == counts
    assert {key: value["sum"] for key, value in tables["sums"].all().items()} == sums
    assert [record.value for record in read_outputs(broker, "large")] == list(range(0, RECORDS, 10))
