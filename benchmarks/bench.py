"""The inputs, made once, and the measured runs on them: both sides in turn, several times, the middle one counts."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks import orders
from benchmarks.measure import Rates, run_measured, wait_for_quiet

LIMIT_S = 900.0

console = Console()


@dataclass
class Row:
    what: str
    potok: float
    other: float
    unit: str
    bar: float
    smaller_is_better: bool
    tries: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return self.potok / self.other

    @property
    def held(self) -> bool:
        return self.ratio <= self.bar if self.smaller_is_better else self.ratio >= self.bar


Measure = Callable[[], float]
"""One run of one side, and the figure that it comes to."""


class Bench:
    def __init__(self, directory: Path, records: int, batch: int, repeat: int) -> None:
        self.directory, self.records, self.batch, self.repeat = directory, records, batch, repeat
        self._made: set[str] = set()
        self._runs = 0

    def log(self, name: str, records: int, users: int) -> str:
        path = self.directory / name
        if name not in self._made:
            console.print(f"[dim]writing {records:,} orders of {users:,} users to the log {name}[/]")
            orders.write_log(path, records, users)
            self._made.add(name)
        return str(path)

    def files(self, name: str, records: int, users: int, per_file: int) -> str:
        path = self.directory / name
        if name not in self._made:
            console.print(f"[dim]writing {records:,} orders of {users:,} users to the files {name}[/]")
            orders.write_files(path, records, users, per_file)
            self._made.add(name)
        return str(path)

    def made(self, name: str, make: Callable[[Path], None]) -> str:
        """A directory that is filled once."""
        path = self.directory / name
        if name not in self._made:
            console.print(f"[dim]writing {name}[/]")
            make(path)
            self._made.add(name)
        return str(path)

    def potok(self, what: str, log: str, batch: int, name: str = "") -> list[Rates]:
        """One run to the end of the log, by a query that starts at its beginning, unless it has a name: the rates of
        all batches, of the first quarter, and of the last."""
        query = name or f"run-{self._runs}"
        return self._run(["benchmarks.with_potok", what, log, "--batch", str(batch), "--name", query])[0]

    def handwritten(self, what: str, files: str) -> list[Rates]:
        return self._run(["benchmarks.handwritten", what, files])[0]

    def handwritten_kafka(self, what: str, bootstrap: str, batch: int) -> list[Rates]:
        return self._run(["benchmarks.handwritten_kafka", what, bootstrap, "--batch", str(batch)])[0]

    def potok_memory(self, what: str, log: str, batch: int) -> float:
        command = ["benchmarks.with_potok", what, log, "--batch", str(batch), "--name", f"run-{self._runs}"]
        return self._run(command, memory=True)[1]

    def handwritten_memory(self, what: str, files: str) -> float:
        return self._run(["benchmarks.handwritten", what, files], memory=True)[1]

    def _run(self, arguments: list[str], *, memory: bool = False) -> tuple[list[Rates], float]:
        wait_for_quiet()
        self._runs += 1
        out = self.directory / f"result-{self._runs}.json"
        console.print(f"[dim]running {arguments[0].removeprefix('benchmarks.')} {arguments[1]}[/]")
        peak = run_measured([sys.executable, "-m", *arguments, "--out", str(out)], LIMIT_S, memory=memory)
        return [Rates(**found) for found in json.loads(out.read_text())], peak / 2**20

    def at_least(self, what: str, potok: Measure, other: Measure, bar: float) -> Row:
        return self._row(what, potok, other, "rows/s", bar, smaller=False)

    def at_most(self, what: str, potok: Measure, other: Measure, unit: str, bar: float) -> Row:
        return self._row(what, potok, other, unit, bar, smaller=True)

    def _row(self, what: str, potok: Measure, other: Measure, unit: str, bar: float, *, smaller: bool) -> Row:
        ours, theirs = [], []
        for _ in range(self.repeat):
            theirs.append(other())
            ours.append(potok())
        tries = [mine / its for mine, its in zip(ours, theirs, strict=True)]
        return Row(what, statistics.median(ours), statistics.median(theirs), unit, bar, smaller, tries)


def speed(found: list[Rates]) -> float:
    """Records a second; of several queries side by side, until the last is through."""
    return found[0].rows / max(rates.seconds for rates in found)


def batch_time(found: list[Rates]) -> float:
    return found[0].batch_ms
