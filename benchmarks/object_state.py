"""State in object storage: what it costs against LMDB next to the log, and how long another machine takes to restore
it. The objects are in a directory of this machine, so the time of a network is not part of it."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks import foundation
from benchmarks.bench import Bench, Row, batch_time, console, speed
from potok.state.cell import encode_fixed
from potok.state.fence import Attempt
from potok.state.objects.object_store import Named, ObjectStore
from potok.state.open import open_objects

SMALL_BATCH_EXTRA_MS = 40.0
RESTORE_S = 15.0
RESTORED_BYTES = 1 << 30
CELLS = 250_000
"""Cells per write: a large batch."""

PAYLOAD = np.dtype([("n", "<i8"), ("total", "<f8")])


@contextmanager
def _objects(bench: Bench) -> Iterator[None]:
    """Start queries with their state in object storage."""
    directory = bench.directory / f"objects-{time.monotonic_ns()}"
    chosen = {"POTOK_STATE": f"object+file://{directory}/shared", "POTOK_CACHE_DIR": f"{directory}/cache"}
    before = {name: os.environ.get(name) for name in chosen}
    os.environ.update(chosen)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        shutil.rmtree(directory, ignore_errors=True)


def large(bench: Bench) -> Row:
    log, _ = foundation.inputs(bench)

    def in_objects() -> float:
        with _objects(bench):
            return speed(bench.potok("typed", log, bench.batch))

    return bench.at_least(
        "state in object storage against LMDB, large batches",
        in_objects,
        lambda: speed(bench.potok("typed", log, bench.batch)),
        0.8,
    )


def small(bench: Bench) -> Row:
    """What object storage adds to a batch of 100 records."""
    log, extra = bench.log("small-log", 10_000, 1_000), list[float]()
    for _ in range(bench.repeat):
        plain = batch_time(bench.potok("typed", log, 100))
        with _objects(bench):
            extra.append(batch_time(bench.potok("typed", log, 100)) - plain)
    middle, tries = statistics.median(extra), [ms / SMALL_BATCH_EXTRA_MS for ms in extra]
    what = "state in object storage, added to a batch of 100 records"
    return Row(what, middle, SMALL_BATCH_EXTRA_MS, "ms", 1.0, smaller_is_better=True, tries=tries)


def restore(bench: Bench) -> Row:
    directory = bench.directory / f"restore-{time.monotonic_ns()}"
    url, position, batch, size = f"object+file://{directory}/shared", None, 0, 0
    console.print(f"[dim]writing {RESTORED_BYTES / 2**30:.0f} GB of state[/]")

    def opened(machine: str) -> ObjectStore:
        named = Named() if position is None else Named(Attempt(1, batch), {0: position})
        return open_objects(url, "restore", 0, named=named, copies=str(directory / machine))

    try:
        while size < RESTORED_BYTES:
            store = opened("one")
            batch += 1
            _write(store, batch)
            position, size = store.position, store.size_bytes()
        times: list[float] = []
        for number in range(bench.repeat):
            began, store = time.perf_counter(), opened(f"other-{number}")
            store.local_path()
            times.append(time.perf_counter() - began)
            store.close()
            shutil.rmtree(directory / f"other-{number}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    middle, tries = statistics.median(times), [seconds / RESTORE_S for seconds in times]
    what = f"restoring {size / 2**30:.1f} GB of state on another machine"
    return Row(what, middle, RESTORE_S, "s", 1.0, smaller_is_better=True, tries=tries)


def _write(store: ObjectStore, batch: int) -> None:
    random = np.random.default_rng(batch)
    keys = [b"customer-%012d" % key for key in sorted(random.integers(0, 10**9, CELLS).tolist())]
    values = np.zeros(CELLS, PAYLOAD)
    values["n"], values["total"] = random.integers(0, 10**6, CELLS), random.random(CELLS)
    attempt = Attempt(1, batch)
    cells = encode_fixed(attempt, values, None, values, np.zeros(CELLS, np.bool_))
    store.put_many(attempt, [("totals", list(zip(keys, cells, strict=True)))])
