"""Rows that wait in runs: found by hash, let out when they are due, and then forgotten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from operators.core.chunks import session_of
from potok.operators.cells import sorted_runs as runs_module
from potok.operators.cells.sorted_runs import Runs
from potok.operators.joins.join_rows import Probe, Rows, hashes_of, in_hash_order
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.state.session import StateSession

KEEP = 100


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "PAGE", 4)


def rows_of(keys: list[str], times: list[int] | None = None) -> Rows:
    count = len(keys)
    texts = pa.array([key.encode() for key in keys], pa.binary())
    at = np.array(times if times is not None else range(count), np.int64)
    zeros = np.zeros(count, np.int64)
    return in_hash_order(Rows(hashes_of(texts), at, at, zeros, np.arange(count), texts, pa.array(keys)))


def probe_of(*keys: str, least: int = -1_000, greatest: int = 1_000) -> Probe:
    hashes = np.sort(hashes_of(pa.array([key.encode() for key in keys], pa.binary())))
    return Probe(hashes, np.full(len(keys), least), np.full(len(keys), greatest))


def runs_on(session: StateSession, *, marked: bool = False) -> Runs:
    return Runs("j/left", session, KEEP, marked=marked)


def add(path: Path, batch: int, rows: Rows, clock: int = -1_000, *, marked: bool = False) -> list[Rows]:
    """One batch: close, add, finish, commit; gives what came out."""
    session = session_of(path, batch)
    runs = runs_on(session, marked=marked)
    out = runs.close(clock)
    runs.add(rows, np.zeros(len(rows), np.bool_), clock)
    runs.finish()
    session.commit()
    return out


def found(path: Path, batch: int, probe: Probe) -> list[str]:
    return sorted(
        value for part in runs_on(session_of(path, batch)).find(probe) for value in part.rows.values.to_pylist()
    )


def test_rows_are_found_by_their_hash(tmp_path: Path) -> None:
    add(tmp_path, 1, rows_of([f"k{n}" for n in range(50)]))
    assert found(tmp_path, 2, probe_of("k3", "k40", "none")) == ["k3", "k40"]


def test_equal_hashes_are_found_on_both_sides_of_a_border_between_pages(tmp_path: Path) -> None:
    add(tmp_path, 1, rows_of(["k"] * 11 + ["other"]))
    assert found(tmp_path, 2, probe_of("k")) == ["k"] * 11


def test_only_rows_in_reach_are_found(tmp_path: Path) -> None:
    add(tmp_path, 1, rows_of(["k"] * 5, [10, 20, 30, 40, 50]))
    parts = list(runs_on(session_of(tmp_path, 2)).find(probe_of("k", least=20, greatest=40)))
    assert sorted(time for part in parts for time in part.rows.times.tolist()) == [20, 30, 40]


def test_a_probe_of_many_looks_at_all_pages_and_one_of_few_at_some(tmp_path: Path) -> None:
    keys = [f"k{n}" for n in range(100)]
    add(tmp_path, 1, rows_of(keys))
    assert found(tmp_path, 2, probe_of(*keys * 3)) == sorted(keys * 3)
    for key in keys:
        assert found(tmp_path, 2, probe_of(key)) == [key]


def test_a_few_runs_of_about_one_size_become_one(tmp_path: Path) -> None:
    for batch in range(1, 21):
        add(tmp_path, batch, rows_of([f"k{batch}", f"m{batch}"], [batch, batch]))
    runs = runs_on(session_of(tmp_path, 21))
    assert len(runs) == 40
    assert len(runs._runs) < runs_module.SEVERAL
    assert found(tmp_path, 21, probe_of("k1", "m20", "k13")) == ["k1", "k13", "m20"]


def test_a_run_is_dropped_when_all_of_it_is_due(tmp_path: Path) -> None:
    add(tmp_path, 1, rows_of(["a", "b"], [10, 20]))
    add(tmp_path, 2, rows_of([]), clock=119)
    assert found(tmp_path, 3, probe_of("a", "b")) == ["a", "b"]
    add(tmp_path, 3, rows_of([]), clock=120)
    assert found(tmp_path, 4, probe_of("a", "b")) == []


def test_one_row_of_the_far_future_does_not_keep_the_others(tmp_path: Path) -> None:
    add(tmp_path, 1, rows_of([f"k{n}" for n in range(20)], [*range(19), 1 << 50]))
    add(tmp_path, 2, rows_of([]), clock=150)
    assert len(runs_on(session_of(tmp_path, 3))) == 1


def test_nothing_is_left_behind_of_what_was_dropped(tmp_path: Path) -> None:
    for batch in range(1, 30):
        at = batch * 60
        add(tmp_path, batch, rows_of([f"k{n}" for n in range(30)], [at] * 30), clock=at, marked=True)
    cells = LmdbStore(tmp_path).entries("j/left")
    assert cells < 80, cells


def test_unmarked_rows_come_out_once_when_they_are_due(tmp_path: Path) -> None:
    add(tmp_path, 1, rows_of(["a", "b", "c"], [10, 20, 30]), marked=True)
    session = session_of(tmp_path, 2)
    runs = runs_on(session, marked=True)
    (part,) = runs.find(probe_of("b"))
    runs.mark(part.run, part.numbers)
    assert runs.next_due() == 110
    assert [rows.values.to_pylist() for rows in runs.close(115)] == [["a"]]
    runs.finish()
    session.commit()
    runs = runs_on(session_of(tmp_path, 3), marked=True)
    assert runs.next_due() == 130
    assert [rows.values.to_pylist() for rows in runs.close(130)] == [["c"]]


def test_flags_survive_when_runs_are_merged(tmp_path: Path) -> None:
    add(tmp_path, 1, rows_of(["a", "b"], [10, 10]), marked=True)
    session = session_of(tmp_path, 2)
    runs = runs_on(session, marked=True)
    for part in runs.find(probe_of("a")):
        runs.mark(part.run, part.numbers)
    runs.finish()
    session.commit()
    for batch in range(3, 9):
        add(tmp_path, batch, rows_of([f"x{batch}"], [900]), marked=True)
    out = add(tmp_path, 9, rows_of([]), clock=110, marked=True)
    assert [value for rows in out for value in rows.values.to_pylist()] == ["b"]


def test_an_attempt_that_never_committed_counts_for_nothing(tmp_path: Path) -> None:
    add(tmp_path, 1, rows_of(["a"], [10]), marked=True)
    add(tmp_path, 2, rows_of(["phantom"] * 9, [20] * 9), marked=True)
    session = session_of(tmp_path, 2, epoch=2, ended={1: 1})
    runs = runs_on(session, marked=True)
    assert len(runs) == 1
    runs.add(rows_of(["real"], [20]), np.zeros(1, np.bool_), -1_000)
    runs.finish()
    session.commit()
    runs = runs_on(session_of(tmp_path, 3, epoch=2, ended={1: 1}), marked=True)
    assert [value for rows in runs.close(500) for value in rows.values.to_pylist()] == ["a", "real"]
