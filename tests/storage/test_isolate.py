"""Read in a child process: its values, its errors, and its exit."""

from __future__ import annotations

import mmap
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from potok.state.lmdb.environment import StateDamaged
from potok.storage.isolate import ReaderDied, isolated


def test_values_are_yielded_as_they_are_produced() -> None:
    def work() -> Iterator[object]:
        yield {"a": [1, "x", None]}
        yield None
        yield "é" * 100_000

    assert list(isolated(work)) == [{"a": [1, "x", None]}, "é" * 100_000]


def test_a_potok_error_keeps_its_class_and_hint() -> None:
    def work() -> Iterator[object]:
        yield 1
        raise StateDamaged(Path("/x"), "page 7")

    reader = isolated(work)
    assert next(reader) == 1
    with pytest.raises(StateDamaged, match=r"/x/data\.mdb is damaged: page 7") as caught:
        next(reader)
    assert "potok state restore" in caught.value.hint


def test_a_reader_that_is_killed_by_sigbus_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(3 * mmap.PAGESIZE))

    def work() -> Iterator[object]:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            os.truncate(path, 10)
            yield mapped[2 * mmap.PAGESIZE]

    with pytest.raises(ReaderDied, match="was killed by SIGBUS"):
        list(isolated(work))


def test_a_reader_that_aborts_is_reported() -> None:
    def work() -> Iterator[object]:
        os.abort()
        yield

    with pytest.raises(ReaderDied, match="was killed by SIGABRT"):
        list(isolated(work))


def test_a_reader_that_hangs_is_killed() -> None:
    def work() -> Iterator[object]:
        signal.pause()
        yield

    with pytest.raises(ReaderDied, match="did nothing"):
        list(isolated(work, quiet_s=0.1))


def test_any_other_failure_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> Iterator[object]:
        raise ValueError("what it was")
        yield

    with pytest.raises(ReaderDied, match="ValueError: what it was"):
        list(isolated(work))
    assert "Traceback" in capfd.readouterr().err


def test_a_process_with_many_open_files_can_isolate() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip("this machine allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        assert list(isolated(lambda: iter([1, 2]))) == [1, 2]
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
