"""`make faults`: all rows of the matrix, in one go, each with a seed that plays it again."""

from __future__ import annotations

import argparse
import fnmatch
import json
import random
import sys
import time
import traceback
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import tests.faults.rows  # noqa: F401 - fills the matrix
from tests.faults.row import ROWS, NotHere, Row
from tests.faults.scene import Scene
from tests.faults.servers import Servers

console = Console(stderr=True)

HELD, MISSED, NOT_RUN = "held", "missed", "not run"
WIDE = 160
"""Columns of a table that goes to a file."""

LONGEST = 300
"""What is longer has been shown when the row was played."""

COLOURS = {HELD: "green", MISSED: "red", NOT_RUN: "yellow"}


@dataclass(frozen=True, slots=True)
class Outcome:
    row: str
    done: str
    verdict: str
    said: str
    seconds: float
    seed: int


def play(row: Row, seed: int, servers: Servers) -> Outcome:
    """Play one row to its end; whatever goes wrong is its outcome."""
    began = time.monotonic()
    scene = Scene(seed, servers)
    try:
        verdict, said = HELD, str(row.play(scene))
    except NotHere as error:
        verdict, said = NOT_RUN, str(error)
    except Exception as error:  # noqa: BLE001 - one row must not keep the others from being played
        verdict, said = MISSED, f"{type(error).__name__}: {error}"
        console.print(escape(traceback.format_exc()), style="dim")
    finally:
        scene.close()
    return Outcome(row.name, row.does, verdict, said, round(time.monotonic() - began, 1), seed)


def show(outcomes: Iterable[Outcome]) -> Table:
    table = Table(title="What breaks, and what becomes of it")
    for name in ("row", "what was done", "outcome", "seconds", "seed"):
        table.add_column(name, justify="right" if name in ("seconds", "seed") else "left", overflow="fold")
    for found in outcomes:
        colour = COLOURS[found.verdict]
        said = f"[{colour}]{found.verdict}[/]: {escape(found.said[:LONGEST])}"
        table.add_row(found.row, escape(found.done), said, f"{found.seconds:.0f}", str(found.seed))
    return table


def _line(found: Outcome) -> str:
    first = f"[{COLOURS[found.verdict]}]{found.verdict:8}[/]{found.row:28}{found.seconds:6.1f} s"
    return f"{first}  {escape(found.said[:LONGEST])} (--seed {found.seed})"


def chosen(patterns: list[str]) -> list[Row]:
    if not patterns:
        return list(ROWS.values())
    found = [row for row in ROWS.values() if any(fnmatch.fnmatch(row.name, pattern) for pattern in patterns)]
    if not found:
        sys.exit(f"no row is called {', '.join(patterns)}; there are: {', '.join(ROWS)}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--rows", action="append", default=[], metavar="NAME", help="only these; * stands for anything")
    parser.add_argument("--seed", type=int, help="play with this seed; by chance if left out")
    parser.add_argument("--repeat", type=int, default=1, help="how often each row is played, each time by another seed")
    parser.add_argument("--json", action="store_true", help="print a line for each row, as an object")
    parser.add_argument("--list", action="store_true", help="say what rows there are, and play none")
    options = parser.parse_args()
    rows = chosen(options.rows)
    if options.list:
        for row in rows:
            print(f"{row.name:28} {row.does}")
        return 0
    seeds = random.Random(options.seed)
    outcomes: list[Outcome] = []
    servers = Servers()
    try:
        for row in [row for row in rows for _ in range(options.repeat)]:
            seed = options.seed if options.seed is not None and options.repeat == 1 else seeds.randrange(1 << 32)
            found = play(row, seed, servers)
            outcomes.append(found)
            if options.json:
                print(json.dumps(asdict(found)), flush=True)
            console.print(_line(found), soft_wrap=True, highlight=False)
    finally:
        servers.close()
    if not options.json:
        Console(width=None if sys.stdout.isatty() else WIDE).print(show(outcomes))
    return verdict_of(outcomes)


def verdict_of(outcomes: list[Outcome]) -> int:
    count = {verdict: sum(found.verdict == verdict for found in outcomes) for verdict in COLOURS}
    console.print(", ".join(f"{number} {verdict}" for verdict, number in count.items() if number))
    return 1 if count[MISSED] or not count[HELD] else 0


if __name__ == "__main__":
    sys.exit(main())
