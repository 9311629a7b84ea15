"""`potok run`: from its start to the first committed batch, the same after `kill -9`, and its cost while idle."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench, Row, console
from benchmarks.measure import idle_percent, wait_for_quiet
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord

FIRST_BATCH_S, RESTART_S, IDLE_PERCENT = 8.0, 9.0, 3.0
IDLE_S, SETTLE_S = 20.0, 5.0
PATIENCE_S = 120.0
LOOK_S = 0.01
RECORDS = 100
OUT = "start-out"

PROGRAM = f"""
from benchmarks.with_potok import typed_out

builder = typed_out("start", topic="{OUT}")
"""


def first_batch(bench: Bench) -> Row:
    """The first start of all fills the caches of the machine, and makes the class-data archive; it is left out."""
    times: list[float] = []
    for number in range(bench.repeat + 1):
        with _log(bench) as (broker, program), _running(broker, program) as (_, began):
            times.append(_output_after(broker, 0) - began)
        if not number:
            _wait_for_archive()
    return _row("`potok run` to the first committed batch", times[1:], FIRST_BATCH_S, "s")


def restart(bench: Bench) -> Row:
    times: list[float] = []
    for _ in range(bench.repeat):
        with _log(bench) as (broker, program):
            with _running(broker, program, end=signal.SIGKILL):
                _output_after(broker, 0)
                before = _written(broker)
            _send(broker)
            with _running(broker, program) as (_, began):
                times.append(_output_after(broker, before) - began)
    return _row("restart after kill -9 to the first output", times, RESTART_S, "s")


def idle(bench: Bench) -> Row:
    with _log(bench) as (broker, program), _running(broker, program) as (process, _):
        _output_after(broker, 0)
        time.sleep(SETTLE_S)
        percent = idle_percent(process.pid, IDLE_S)
    return _row("`potok run` with nothing to do, of one core", [percent], IDLE_PERCENT, "%")


def _row(what: str, found: list[float], bar: float, unit: str) -> Row:
    tries = [figure / bar for figure in found]
    return Row(what, statistics.median(found), bar, unit, 1.0, smaller_is_better=True, tries=tries)


@contextmanager
def _log(bench: Bench) -> Iterator[tuple[EmbeddedBroker, Path]]:
    directory = bench.directory / f"start-{time.monotonic_ns()}"
    broker = EmbeddedBroker(directory / "data")
    for topic in ("orders", OUT):
        broker.create_topic(topic, 2)
    program = directory / "program.py"
    program.write_text(PROGRAM)
    _send(broker)
    yield broker, program
    broker.close()


@contextmanager
def _running(
    broker: EmbeddedBroker, program: Path, *, end: signal.Signals = signal.SIGTERM
) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    wait_for_quiet()
    console.print("[dim]starting potok run[/]")
    command = [
        "-c",
        "from potok.cli.entry import main; main()",
        "run",
        str(program),
        "--broker",
        f"file:{broker.directory}",
        "--json",
    ]
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    try:
        yield process, began
    finally:
        process.send_signal(end)
        process.wait(60)


def _send(broker: EmbeddedBroker) -> None:
    now = time.time_ns() // 1_000_000
    users = [f"user-{number}" for number in range(RECORDS)]
    orders = [{"order_id": user, "user_id": user, "amount": 50.0, "items": [], "created_at": now} for user in users]
    broker.append("orders", [LogRecord(str(o["user_id"]).encode(), json.dumps(o).encode(), now) for o in orders])


def _written(broker: EmbeddedBroker) -> int:
    return sum(broker.end_offsets(OUT).values())


def _output_after(broker: EmbeddedBroker, before: int) -> float:
    """When there was more output than that."""
    deadline = time.monotonic() + PATIENCE_S
    while _written(broker) <= before:
        if time.monotonic() > deadline:
            raise RuntimeError("potok run wrote nothing")
        time.sleep(LOOK_S)
    return time.monotonic()


def _wait_for_archive() -> None:
    from potok.settings import Settings

    cache, deadline = Settings.load().cache_path, time.monotonic() + PATIENCE_S
    while list(cache.glob("spark-classes-*.classes")) and time.monotonic() < deadline:
        time.sleep(0.5)
