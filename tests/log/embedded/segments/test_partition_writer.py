"""Files that are synced side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from potok.log.embedded.segments.partition_writer import sync_all


def test_files_are_synced_side_by_side() -> None:
    together = threading.Barrier(4, timeout=20)
    # Each waits for all others, so one after the other they would never end.
    sync_all([lambda: together.wait() and None] * 4)
    assert not together.broken


def test_nothing_to_sync_is_not_an_error() -> None:
    sync_all([])


@pytest.mark.parametrize("failing", [0, 1, 3])
def test_a_failure_is_reported_after_all_have_ended(failing: int) -> None:
    ended: list[int] = []
    failed = threading.Event()

    def sync(number: int) -> None:
        if number == failing:
            failed.set()
            raise OSError("no room")
        assert failed.wait(20)
        ended.append(number)

    with pytest.raises(OSError, match="no room"):
        # The one that runs in this thread comes first, and waits for the one that fails in another.
        sync_all([lambda number=number: sync(number) for number in range(4)])  # type: ignore[misc]
    assert sorted(ended) == [number for number in range(4) if number != failing]


def test_a_forked_process_has_threads_of_its_own() -> None:
    sync_all([lambda: None] * 3)
    child = os.fork()
    if child == 0:
        together = threading.Barrier(3, timeout=20)
        try:
            sync_all([lambda: together.wait() and None] * 3)
        finally:
            os._exit(0 if not together.broken else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_files_are_synced_while_the_process_ends() -> None:
    program = (
        "import atexit\n"
        "from potok.log.embedded.segments.partition_writer import sync_all\n"
        "sync_all([lambda: None] * 3)\n"
        "atexit.register(lambda: sync_all([lambda n=n: print(n) for n in range(3)]))\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert sorted(found.stdout.split()) == ["0", "1", "2"]
