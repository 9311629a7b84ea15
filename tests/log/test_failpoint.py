from __future__ import annotations

import signal

PROGRAM = """
from potok.log.failpoint import failpoint
for n in range(3):
    failpoint("here")
    say(n)
"""


def test_an_unset_failpoint_does_nothing(run) -> None:
    done = run(PROGRAM)
    assert (done.returncode, done.stdout.split()) == (0, ["0", "1", "2"])


def test_a_failpoint_kills_at_the_first_call(run) -> None:
    done = run(PROGRAM, "here")
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")


def test_a_failpoint_kills_at_the_nth_call(run) -> None:
    done = run(PROGRAM, "here:3")
    assert (done.returncode, done.stdout.split()) == (-signal.SIGKILL, ["0", "1"])
