"""A process that is asked to stop does so in time, or ends in the middle of its batch and says so."""

from __future__ import annotations

import subprocess
import sys

from potok.runtime.queries.stop_deadline import StopDeadline

HANGS = """
import threading
from potok.runtime.queries import stop_deadline
stop_deadline.GRACE_S = 0.0
deadline = stop_deadline.StopDeadline({timeout_ms})
deadline.begin()
{then}
threading.Event().wait({wait_s})
"""


def run(then: str = "", *, timeout_ms: int = 1, wait_s: float = 60) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", HANGS.format(then=then, timeout_ms=timeout_ms, wait_s=wait_s)]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)


def test_nothing_is_over_before_the_request_to_stop() -> None:
    assert not StopDeadline(1).is_over


def test_without_a_limit_a_stop_is_never_over() -> None:
    deadline = StopDeadline(0)
    deadline.begin()
    deadline.stopped()
    assert not deadline.is_over


def test_a_process_that_hangs_is_ended_with_a_message_and_its_own_exit_code() -> None:
    ended = run()
    assert ended.returncode == 4
    assert "the batch did not end within 1ms after the request to stop" in ended.stderr
    assert "it is repeated at the next start" in ended.stderr


def test_a_process_that_stopped_in_time_is_left_alone() -> None:
    ended = run("deadline.stopped()\ndeadline._watchdog.join()", timeout_ms=60_000, wait_s=0)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_process_that_reports_the_timeout_and_hangs_afterwards_is_ended_all_the_same() -> None:
    ended = run("while not deadline.is_over: pass\ndeadline.stopped()")
    assert ended.returncode == 4
