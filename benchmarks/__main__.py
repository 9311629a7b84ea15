"""`make bench`: all rows of the table, in one go.

Each side of a row runs in processes of its own, one after the other, on an otherwise quiet machine. A row is a ratio;
`bar` is what we hold ourselves to.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import orders
from benchmarks.measure import Rates, run_measured, wait_for_quiet

USERS = 100_000
MANY_USERS = 5_000_000
LIMIT_S = 900.0

console = Console()


@dataclass
class Row:
    what: str
    potok: float
    other: float
    unit: str
    ratio: float
    bar: str
    held: bool


class Bench:
    """The inputs, made once, and the measured runs on them."""

    def __init__(self, directory: Path, records: int, batch: int) -> None:
        self.directory, self.records, self.batch = directory, records, batch
        self._made: set[str] = set()
        self._runs = 0
        self._cache: dict[str, tuple[list[Rates], int]] = {}

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

    def potok(
        self, what: str, log: str, batch: int, name: str = "bench", *, memory: bool = False
    ) -> tuple[list[Rates], int]:
        arguments = ["benchmarks.with_potok", what, log, "--batch", str(batch), "--name", f"{name}-{what}"]
        return self._run(arguments, memory=memory)

    def handwritten(self, what: str, files: str) -> tuple[list[Rates], int]:
        return self._run(["benchmarks.handwritten", what, files], memory=what == "count_and_sum")

    def _run(self, arguments: list[str], *, memory: bool) -> tuple[list[Rates], int]:
        key = " ".join(arguments)
        if key not in self._cache:
            wait_for_quiet()
            self._runs += 1
            out = self.directory / f"result-{self._runs}.json"
            console.print(f"[dim]running {arguments[0].removeprefix('benchmarks.')} {arguments[1]}[/]")
            peak = run_measured([sys.executable, "-m", *arguments, "--out", str(out)], LIMIT_S, memory=memory)
            self._cache[key] = [Rates(**found) for found in json.loads(out.read_text())], peak
        return self._cache[key]


def throughput(bench: Bench) -> list[Row]:
    log = bench.log("log", bench.records, USERS)
    files = bench.files("files", bench.records, USERS, bench.batch)
    other, other_peak = bench.handwritten("count_and_sum", files)
    typed, peak = bench.potok("typed", log, bench.batch, memory=True)
    base = other[0].rows_per_second
    return [
        at_least("typed topology, count and sum", typed[0].rows_per_second, base, "rows/s", 2.0),
        at_most("peak memory of the same", peak / 2**20, other_peak / 2**20, "MB", 1.2),
    ]


def untyped(bench: Bench) -> list[Row]:
    log = bench.log("log", bench.records, USERS)
    files = bench.files("files", bench.records, USERS, bench.batch)
    other, _ = bench.handwritten("count_and_sum", files)
    found, _ = bench.potok("dynamic", log, bench.batch)
    base = other[0].rows_per_second
    return [at_least("dynamic values, untraceable lambdas", found[0].rows_per_second, base, "rows/s", 1.0)]


def branches(bench: Bench) -> list[Row]:
    log = bench.log("log", bench.records, USERS)
    files = bench.files("files", bench.records, USERS, bench.batch)
    other, _ = bench.handwritten("three_branches", files)
    found, _ = bench.potok("seeds", log, bench.batch)
    together = max(rates.seconds for rates in other)
    base = other[0].rows / together
    return [at_least("three branches against three queries", found[0].rows_per_second, base, "rows/s", 2.5)]


def small_batches(bench: Bench) -> list[Row]:
    log = bench.log("small-log", 10_000, 1_000)
    files = bench.files("small-files", 10_000, 1_000, 100)
    other, _ = bench.handwritten("count_and_sum", files)
    found, _ = bench.potok("typed", log, 100, "small")
    return [at_most("a batch of 100 records", found[0].batch_ms, other[0].batch_ms, "ms", 0.7)]


def large_state(bench: Bench) -> list[Row]:
    """The same input twice: on a query that knows its 100 k users alone, and on one that knows 5 M."""
    some = str(bench.directory / "some-keys")
    many = str(bench.directory / "many-keys")
    for path, users in ((some, USERS), (many, MANY_USERS)):
        bench.log(Path(path).name, users * 3 // 2 if users == USERS else users, users)
        bench.potok("typed", path, bench.batch, "keys")
        add_more(Path(path), 2_000_000)
    few, _ = bench.potok("typed", some, bench.batch // 4, "keys")
    full, _ = bench.potok("typed", many, bench.batch // 4, "keys")
    return [at_most("batch time, 5 M keys against 100 k", full[0].batch_ms, few[0].batch_ms, "ms", 1.3)]


def add_more(directory: Path, records: int) -> None:
    from potok.log.open import open_broker

    broker = open_broker(directory)
    import pyarrow as pa

    for _, texts in orders.chunks(records, USERS):
        broker.append("orders", pa.RecordBatch.from_pydict({"value": texts.cast(pa.binary())}))


def at_least(what: str, potok: float, other: float, unit: str, bar: float) -> Row:
    return Row(what, potok, other, unit, potok / other, f">= {bar}x", potok / other >= bar)


def at_most(what: str, potok: float, other: float, unit: str, bar: float) -> Row:
    return Row(what, potok, other, unit, potok / other, f"<= {bar}x", potok / other <= bar)


SUITES: dict[str, Callable[[Bench], list[Row]]] = {
    "throughput": throughput,
    "dynamic": untyped,
    "branches": branches,
    "small": small_batches,
    "state": large_state,
}


def show(rows: list[Row]) -> None:
    table = Table(title="Potok against hand-written Structured Streaming")
    for name in ("what", "Potok", "other", "ratio", "bar", ""):
        table.add_column(name, justify="left" if name in ("what", "") else "right")
    for row in rows:
        mark = "[green]held[/]" if row.held else "[red]missed[/]"
        numbers = (f"{row.potok:,.0f} {row.unit}", f"{row.other:,.0f} {row.unit}", f"{row.ratio:.2f}x")
        table.add_row(row.what, *numbers, row.bar, mark)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure Potok against what a user would write by hand.")
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--batch", type=int, default=1_000_000, help="records per batch, the same on both sides")
    parser.add_argument("--only", choices=sorted(SUITES), action="append")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/latest.json"))
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="potok-bench-"))
    rows: list[Row] = []
    try:
        bench = Bench(directory, options.records, options.batch)
        for name in options.only or SUITES:
            rows += SUITES[name](bench)
            show(rows)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "system": platform.platform()}
    options.out.write_text(json.dumps({"machine": machine, "rows": [asdict(row) for row in rows]}, indent=2))
    console.print(f"written to {options.out}")
    sys.exit(0 if all(row.held for row in rows) else 1)


if __name__ == "__main__":
    main()
