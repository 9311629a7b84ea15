"""Patterns: against MATCH_RECOGNIZE of Flink SQL, and with many open matches of one key."""

from __future__ import annotations

import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import payments
from benchmarks.bench import LIMIT_S, Bench, Row, console, speed
from benchmarks.measure import wait_for_quiet
from benchmarks.packages import python_with
from potok import StreamsBuilder
from potok.patterns import cep
from potok.testing import TestDriver

PAYMENTS, USERS = 2_000_000, 100_000
BATCH = 500_000
FLINK_FILES = 2
"""As many as Flink has slots."""
FLOOR = 200_000

OPEN_MATCHES = 50_000
PER_BATCH, BATCHES, FIRST_BIG = 1_000, 80, 75_000
"""A record a millisecond, so a batch is a second. The first match is found once the window has been full for long."""

_FLINK = Path(__file__).parent / "flink"


def fraud(bench: Bench) -> Row:
    log = bench.made("payments", lambda path: payments.write_log(path, PAYMENTS, USERS))
    return bench.at_least(
        "patterns: small{3,} big within 10 min, against MATCH_RECOGNIZE of Flink SQL",
        lambda: speed(bench.potok("fraud", log, BATCH)),
        lambda: flink(bench),
        1.0,
    )


def fraud_rate(bench: Bench) -> Row:
    log = bench.made("payments", lambda path: payments.write_log(path, PAYMENTS, USERS))
    return bench.at_least(
        "patterns: small{3,} big within 10 min, against a fixed rate",
        lambda: speed(bench.potok("fraud", log, BATCH)),
        lambda: FLOOR,
        1.0,
    )


def open_matches(bench: Bench) -> Row:
    """One key, with a thousand new partial matches in each second of event time, few of which become whole: the rate
    while the window is full and as many end as begin, against the beginning."""
    ratios = []
    for number in range(bench.repeat):
        wait_for_quiet()
        console.print("[dim]running open matches[/]")
        ratios.append(_open_matches(bench.directory / f"open-matches-{number}"))
    ratios.sort(key=lambda rates: rates[1] / rates[0])
    first, last = ratios[len(ratios) // 2]
    what = f"patterns: one key, {OPEN_MATCHES:,} open matches against none"
    return Row(what, last, first, "rows/s", 0.8, smaller_is_better=False, tries=[two / one for one, two in ratios])


def _open_matches(directory: Path) -> tuple[float, float]:
    """Records a second before and while the window is full; the first batches are left out."""
    directory.mkdir()
    builder = StreamsBuilder("open-matches")
    small = cep.event("small", lambda e: e["amount"] < 10)
    big = cep.event("big", lambda e: e["amount"] > 100)
    pattern = small.followed_by(big).within(f"{OPEN_MATCHES} ms")
    found = (
        builder.stream("payments", value="amount bigint")
        .group_by_key()
        .match(pattern, after="skip_past_last", max_runs=2 * OPEN_MATCHES)
    )
    found.to("alerts")
    rates = []
    with TestDriver(builder, shards=1, directory=directory) as driver:
        for batch in range(BATCHES):
            numbers = np.arange(batch * PER_BATCH, (batch + 1) * PER_BATCH)
            amounts = np.where(numbers == FIRST_BIG, 500, 5)
            values = pc.binary_join_element_wise('{"amount":', pa.array(amounts).cast(pa.string()), "}", "")
            keys = pa.repeat(pa.scalar(b"one"), PER_BATCH)
            columns = {
                "key": keys,
                "value": values.cast(pa.binary()),
                "timestamp": pa.array(payments.BEGIN_MS + numbers),
            }
            driver.broker.append("payments", pa.RecordBatch.from_pydict(columns))
            began = time.perf_counter()
            driver.run(more_to_come=True)
            rates.append(PER_BATCH / (time.perf_counter() - began))
        if not driver.read("alerts"):
            raise RuntimeError("no match was found")
    full = OPEN_MATCHES // PER_BATCH
    return statistics.median(rates[3 : full // 2]), statistics.median(rates[full + 1 : FIRST_BIG // PER_BATCH])


def flink(bench: Bench) -> float:
    """Records a second of the whole job, without the start of its cluster."""
    files = bench.made("payment-files", lambda path: payments.write_files(path, PAYMENTS, USERS, FLINK_FILES))
    python = python_with("flink", _FLINK / "requirements.txt")
    wait_for_quiet()
    console.print("[dim]running Flink[/]")
    out = bench.directory / f"flink-{time.monotonic_ns()}"
    done = subprocess.run(
        [python, str(_FLINK / "fraud.py"), files, str(out)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    rates = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("RUNTIME ")]
    if not rates:
        raise RuntimeError(f"Flink failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return PAYMENTS / (int(rates[0]) / 1_000)
