"""Workers of one program, `faust/orders.py`, in Faust from PyPI and in Potok; each is a process that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import kafka
from benchmarks.bench import LIMIT_S, Bench
from benchmarks.packages import python_with
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.snapshots.ledger_view import read_entry

FAUST, POTOK, SPREAD = "faust", "potok", "potok_spread"
LOOK_S = 0.02
TABLES = ("order_counts", "user_totals", "hourly_stats")

Mark = tuple[float, int]
"""At that time a worker was through with so many records."""

_PROGRAM = Path(__file__).parent / "faust"


@dataclass(frozen=True)
class Place:
    """Where a program runs under a name of its own, with what it keeps and the topic it sends to."""

    side: str
    name: str
    url: str
    directory: Path

    @property
    def out(self) -> str:
        return f"{self.name}-high-value"

    @property
    def bootstrap(self) -> str:
        return kafka.bootstrap_of(self.url)

    def broker(self) -> Broker:
        return open_broker(self.url)

    def changelog(self, table: str) -> str:
        return f"{self.name}-{table}-changelog"

    def environment(self) -> dict[str, str]:
        # Where Python may keep what it has compiled, as it does unless somebody forbids it.
        usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {
            **usual,
            "SIDE": self.side,
            "APP": self.name,
            "BROKER": f"kafka://{self.bootstrap}" if self.side == FAUST else self.url,
            "OUT": self.out,
            "DATA": str(self.directory / "data"),
            "PARTITIONS": str(kafka.PARTITIONS),
        }


def place(bench: Bench, side: str, url: str) -> Place:
    """A fresh one. Faust may take its first records before it has heard of topics that it has just made, and stops
    over it; so all topics are there from the beginning."""
    name = f"{side.replace('_', '-')}-{time.monotonic_ns()}"
    found = Place(side, name, url, bench.directory / name)
    found.directory.mkdir()
    broker = found.broker()
    broker.create_topic(found.out, kafka.PARTITIONS)
    for table in TABLES if side == FAUST else ():
        broker.create_topic(found.changelog(table), kafka.PARTITIONS, cleanup_policy="compact")
    return found


class Worker:
    """A running worker. What it has to say goes to a file, of which the end is shown if it fails."""

    def __init__(self, where: Place) -> None:
        self._place, self._said = where, where.directory / "said.log"
        command = (
            [python_with("faust", _PROGRAM / "requirements.txt"), str(_PROGRAM / "watched.py")]
            if where.side == FAUST
            else [sys.executable, _orders()]
        )
        options = [] if where.side == FAUST else ["--until-end"]
        self.began_at = time.monotonic()
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(
                [*command, "worker", "-l", "error", "--without-web", *options],
                stdout=subprocess.PIPE if where.side == FAUST else said,
                stderr=said,
                env=where.environment(),
                text=True,
                # A group of its own, so that a kill reaches all of its processes.
                start_new_session=True,
            )

    def kill(self) -> None:
        """As `kill -9` does: nothing is closed and no peer is notified."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def check(self) -> None:
        if self._process.poll() not in (None, 0):
            raise RuntimeError(f"{self._place.side} failed:\n{self._said.read_text()[-3000:]}")

    def marks(self, limit_s: float = LIMIT_S) -> Iterator[Mark]:
        """How far it is, as it goes on, until it ends or is killed."""
        return self._told(limit_s) if self._place.side == FAUST else self._seen(limit_s)

    def _told(self, limit_s: float) -> Iterator[Mark]:
        """Faust says itself how many records its agents are through with."""
        assert self._process.stdout is not None
        watchdog = threading.Timer(limit_s, self.kill)
        watchdog.start()
        try:
            for line in self._process.stdout:
                if line.startswith("DONE "):
                    _, at, done = line.split()
                    yield float(at), int(done)
        finally:
            watchdog.cancel()
        raise RuntimeError(f"Faust ended early:\n{self._said.read_text()[-3000:]}")

    def _seen(self, limit_s: float) -> Iterator[Mark]:
        """The committed offsets of Potok, looked at from outside: what is not committed is not counted."""
        broker, known = self._place.broker(), 0
        deadline = time.monotonic() + limit_s
        while True:
            over = self._process.poll() is not None
            entry = read_entry(broker, self._place.name)
            done = 0 if entry is None else sum(entry.offsets.topics.get("orders", {}).values())
            if done != known:
                known = done
                yield time.monotonic(), done
            if over:
                return self.check()
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self._place.side} took longer than {limit_s:.0f} seconds")
            time.sleep(LOOK_S)


@contextmanager
def working(where: Place) -> Iterator[Worker]:
    worker = Worker(where)
    try:
        yield worker
    finally:
        worker.kill()


def _orders() -> str:
    return str(_PROGRAM / "orders.py")
