"""Rates and memory, measured the same way on both sides."""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass
class Rates:
    """Batches of one query, the first of them left out: it warms everything up."""

    rows: int
    seconds: float
    batch_ms: float
    batches: int

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds


def rates_of(progress: Sequence[Any]) -> Rates:
    """From the beginning of the second batch to the end of the last, by Spark's progress reports."""
    batches = [dict(report) if isinstance(report, dict) else report for report in progress]
    full = [(batch, int(batch["numInputRows"])) for batch in batches if batch["numInputRows"]]
    steady = full[1:] or full
    if not steady:
        # A run of one batch may end before Spark has reported it.
        return Rates(0, 1.0, 0.0, 0)
    begins = [_at(batch["timestamp"]) for batch, _ in steady]
    times = [float(batch["durationMs"]["triggerExecution"]) for batch, _ in steady]
    gaps = [(later - sooner) * 1000 for sooner, later in itertools.pairwise(begins)]
    seconds = begins[-1] - begins[0] + times[-1] / 1000
    typical = sorted(gaps or times)
    return Rates(sum(count for _, count in steady), seconds, typical[len(typical) // 2], len(steady))


def rates_between(ends: Sequence[tuple[float, int]]) -> Rates:
    """From the end of the first batch to the end of the last, by when each ended and how many records were read."""
    if len(ends) < 2:
        return Rates(0, 1.0, 0.0, 0)
    gaps = sorted((later - sooner) * 1000 for (sooner, _), (later, _) in itertools.pairwise(ends))
    (began, before), (ended, after) = ends[0], ends[-1]
    return Rates(after - before, ended - began, gaps[len(gaps) // 2], len(gaps))


def _at(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def run_measured(command: list[str], timeout: float, *, memory: bool) -> int:
    """Run a command to its end; returns the peak memory of its process tree in bytes, file-backed pages left out.

    To look at the memory of a process stops it for a moment, and for longer the more files it has mapped. So it is
    looked at only where somebody wants to know.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peak = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while memory and not done.wait(0.5):
            peak = max(peak, tree_pss(process.pid))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        _, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    finally:
        done.set()
        watcher.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{errors[-3000:]}")
    return peak


def tree_pss(root: int) -> int:
    """The proportional set size of a process and all below it, anonymous and shared memory only."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        total += _pss(pid)
    return total


def tree_cpu_s(root: int) -> float:
    """The processor time of a process and of all below it that live."""
    parents: dict[int, list[int]] = {}
    spent: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(words[1]), []).append(int(entry.name))
            spent[int(entry.name)] = int(words[11]) + int(words[12])
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        waiting += parents.get(pid, [])
        total += spent.get(pid, 0)
    return total / os.sysconf("SC_CLK_TCK")


def idle_percent(root: int, seconds: float) -> float:
    """How much of one core a process and all below it use."""
    before, began = tree_cpu_s(root), time.perf_counter()
    time.sleep(seconds)
    return (tree_cpu_s(root) - before) / (time.perf_counter() - began) * 100


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))


def busy_share(seconds: float = 1.0) -> float:
    """How much of the processors was at work while we looked; the load average would still tell of our own last run."""
    before = _jiffies()
    time.sleep(seconds)
    busy, total = (after - first for after, first in zip(_jiffies(), before, strict=True))
    return busy / max(total, 1)


def _jiffies() -> tuple[int, int]:
    try:
        counts = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return 0, 0
    return sum(counts) - counts[3] - counts[4], sum(counts)


def wait_for_quiet(seconds: float = 60) -> None:
    """Figures from a machine that has something else to do mean nothing."""
    end = time.monotonic() + seconds
    while busy_share() > 0.15 and time.monotonic() < end:
        pass
