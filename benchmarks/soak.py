"""`python -m benchmarks.soak --minutes 3`: a steady load, and whether memory and disk stay flat under it.

Windows open and close all the time, sessions come and go, a stream waits for its match: what is over must be gone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import potok
from benchmarks.measure import tree_pss
from potok import StreamsBuilder, session, tumbling
from potok.log.open import open_broker

PARTITIONS = 2
SLICE_S = 0.2
SAMPLE_S = 2.0
GROWTH = 1.15
"""How much more the last quarter may use than the second one: the first is for warming up."""


@dataclass(frozen=True)
class Sample:
    seconds: float
    memory_mb: float
    state_mb: float
    records: int


def topology() -> StreamsBuilder:
    builder = StreamsBuilder("soak")
    events = builder.stream("events", value="user string, n bigint")
    by_user = events.group_by("user")
    by_user.windowed_by(tumbling("10 s", grace="1 s", retention="10 s")).sum("n", name="per_window")
    by_user.windowed_by(session("5 s", retention="10 s")).count(name="sessions")
    keyed = events.select_key("user")
    keyed.join(keyed, lambda a, b: {"n": a["n"] + b["n"]}, within="50 ms", name="pairs").group_by_key().count(name="t")
    return builder


def query(directory: str) -> None:
    potok.run(topology(), broker=directory)


def append(directory: Path, first: int, count: int, users: int) -> None:
    numbers = np.arange(first, first + count)
    text = pc.cast(pa.array(numbers % users), pa.string())
    values = pc.binary_join_element_wise('{"user":"u-', text, '","n":1}', "")
    open_broker(directory).append("events", pa.RecordBatch.from_pydict({"value": values.cast(pa.binary())}))


def bytes_below(path: Path) -> int:
    """What the files really take on the disk: LMDB's are sparse."""
    total = 0
    for file in path.rglob("*"):
        with suppress(FileNotFoundError):  # the query goes on, and removes what it no longer needs
            total += file.stat().st_blocks * 512
    return total


def soak(minutes: float, per_second: int, users: int) -> list[Sample]:
    with tempfile.TemporaryDirectory(prefix="potok-soak-") as folder:
        directory = Path(folder)
        open_broker(directory).create_topic("events", PARTITIONS)
        command = [sys.executable, "-m", "benchmarks.soak", "--query", folder]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        samples: list[Sample] = []
        sent, began, looked = 0, time.monotonic(), 0.0
        try:
            while (passed := time.monotonic() - began) < minutes * 60 and child.poll() is None:
                count = int(passed * per_second) - sent
                if count > 0:
                    append(directory, sent, count, users)
                    sent += count
                if passed - looked >= SAMPLE_S:
                    looked = passed
                    state = bytes_below(directory / "queries") / 2**20
                    samples.append(Sample(passed, tree_pss(child.pid) / 2**20, state, sent))
                time.sleep(SLICE_S)
        finally:
            child.terminate()
            code = child.wait(60)
        if code:
            raise RuntimeError(f"the query ended with {code}")
        return samples


def growth(values: list[float]) -> float:
    """The last quarter against the second."""
    quarter = max(len(values) // 4, 1)
    return statistics.median(values[-quarter:]) / max(statistics.median(values[quarter : 2 * quarter]), 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a steady load and see whether memory and disk stay flat.")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--per-second", type=int, default=2_000)
    parser.add_argument("--users", type=int, default=5_000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/soak.json"))
    parser.add_argument("--query", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.query:
        query(options.query)
        return
    samples = soak(options.minutes, options.per_second, options.users)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps([asdict(sample) for sample in samples], indent=1))
    memory, state = (growth([getattr(s, name) for s in samples]) for name in ("memory_mb", "state_mb"))
    last = samples[-1]
    print(f"{last.records:,} records in {last.seconds:.0f} s")
    print(f"at the end {last.memory_mb:.0f} MB of memory and {last.state_mb:.0f} MB of state")
    print(f"growth from the second quarter to the last: memory {memory:.2f}x, state {state:.2f}x (bar <= {GROWTH}x)")
    sys.exit(0 if max(memory, state) <= GROWTH else 1)


if __name__ == "__main__":
    main()
