"""One process at a time runs a query."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from potok.runtime.queries.lock import QueryAlreadyRuns, QueryLock

HOLDER = """
import sys
from pathlib import Path
from potok.runtime.queries.lock import QueryLock
lock = QueryLock(Path(sys.argv[1]), "shop")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_start_is_refused_and_names_the_running_process(tmp_path: Path) -> None:
    lock = QueryLock(tmp_path, "shop")
    with pytest.raises(QueryAlreadyRuns, match=f'"shop" is already running .*{os.getpid()}') as caught:
        QueryLock(tmp_path, "shop")
    assert "StreamsBuilder" in caught.value.hint
    lock.release()


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    QueryLock(tmp_path, "shop").release()
    QueryLock(tmp_path, "shop").release()


def test_two_queries_run_side_by_side(tmp_path: Path) -> None:
    locks = [QueryLock(tmp_path / name, name) for name in ("one", "two")]
    for lock in locks:
        lock.release()


def test_another_process_holds_the_lock_until_it_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(QueryAlreadyRuns, match=str(holder.pid)):
            QueryLock(tmp_path, "shop")
        holder.kill()
        holder.wait()
    QueryLock(tmp_path, "shop").release()
