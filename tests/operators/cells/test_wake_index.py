"""When to look at which keys again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from operators.core.chunks import session_of
from potok.operators.cells import wake_index
from potok.operators.cells.wake_index import WakeIndex

BEFORE = -(1 << 40)


def add(path: Path, times: list[int], keys: list[bytes], *, clock: int = BEFORE, batch: int = 1) -> None:
    session = session_of(path, batch)
    index = WakeIndex("t/index", session)
    index.add(np.array(times, np.int64), keys)
    index.flush(clock)
    session.commit()


def wake(path: Path, clock: int, batch: int) -> tuple[list[bytes], int | None]:
    """The keys that are due, which are not added again, and what is due next."""
    session = session_of(path, batch)
    index = WakeIndex("t/index", session)
    found = index.due(clock)
    index.flush(clock)
    session.commit()
    return found, index.next_due()


def test_a_key_is_woken_once_when_the_watermark_reaches_its_time(tmp_path: Path) -> None:
    add(tmp_path, [10, 20, 20], [b"a", b"b", b"c"])
    assert wake(tmp_path, 9, 2) == ([], 10)
    assert wake(tmp_path, 10, 3) == ([b"a"], 20)
    assert wake(tmp_path, 30, 4) == ([b"b", b"c"], None)
    assert wake(tmp_path, 40, 5) == ([], None)


def test_a_key_indexed_under_several_times_is_returned_once(tmp_path: Path) -> None:
    add(tmp_path, [10, 15], [b"a", b"a"])
    assert wake(tmp_path, 20, 2) == ([b"a"], None)


def test_lists_of_two_batches_do_not_replace_each_other(tmp_path: Path) -> None:
    add(tmp_path, [10], [b"a"])
    add(tmp_path, [10], [b"b"], batch=2)
    assert wake(tmp_path, 10, 3) == ([b"a", b"b"], None)


def test_what_an_attempt_that_failed_added_is_not_there(tmp_path: Path) -> None:
    add(tmp_path, [10], [b"a"])
    session = session_of(tmp_path, 1, epoch=2, ended={1: 0})
    assert WakeIndex("t/index", session).due(50) == []


def test_many_keys_are_few_lists_and_none_is_woken_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_index, "LISTS", 10)
    times = list(range(-500, 500))
    keys = [b"%d" % time for time in times]
    add(tmp_path, times, keys, clock=-501)
    session = session_of(tmp_path, 2)
    assert len(session.keys("t/index", b"\xff" * 16)) <= 12
    assert {b"%d" % time for time in range(-500, 1)} <= set(WakeIndex("t/index", session).due(0))


def test_a_list_is_never_stored_below_the_watermark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_index, "LISTS", 2)
    add(tmp_path, [101, 150, 300], [b"a", b"b", b"c"], clock=100)
    assert wake(tmp_path, 100, 2) == ([], 101)
