"""Members in processes of their own, killed and stopped: partitions move, and nothing is lost."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest

from log.waiting import until
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord

pytestmark = pytest.mark.kill

Start = Callable[..., subprocess.Popen[str]]

MEMBER = """
from potok.log.clients.consumer import Consumer
with Consumer(EmbeddedBroker(DATA), "t", group="g", start="earliest", lease=LEASE) as consumer:
    while True:
        for record in consumer.poll(timeout=0.1, max_records=7):
            say(record.text())
        consumer.commit()
"""


def member(start: Start, lease: float = 1.0) -> subprocess.Popen[str]:
    return start(MEMBER.replace("LEASE", str(lease)))


def fill(broker: EmbeddedBroker, each: int, first: int = 0) -> None:
    for partition in range(4):
        broker.append("t", [LogRecord(None, b"%d:%d" % (partition, n)) for n in range(first, first + each)], partition)


def loads(broker: EmbeddedBroker) -> list[int]:
    return sorted(len(found.topic_partitions) for found in broker.describe_group("g").members)


def said(process: subprocess.Popen[str]) -> list[str]:
    process.kill()
    out, _ = process.communicate(timeout=30)
    return out.split()


def test_the_partitions_of_a_killed_member_move_and_no_record_is_lost(start: Start, broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 4)
    fill(broker, 50)
    first, second = member(start), member(start)
    until(lambda: loads(broker) == [2, 2])
    fill(broker, 50, first=50)
    first.send_signal(signal.SIGKILL)
    until(lambda: loads(broker) == [4])
    fill(broker, 50, first=100)
    until(lambda: broker.committed("g", "t") == broker.end_offsets("t"))
    seen = Counter(said(first) + said(second))
    assert set(seen) == {f"{part}:{n}" for part in range(4) for n in range(150)}
    # What the dead member had handed out and not committed comes again: one poll at most.
    assert sum(count - 1 for count in seen.values()) <= 7


def test_partitions_stay_balanced_while_members_join_and_leave(start: Start, broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 4)
    processes = [member(start) for _ in range(3)]
    until(lambda: loads(broker) == [1, 1, 2])
    processes[0].kill()
    until(lambda: loads(broker) == [2, 2])
    processes[1].kill()
    until(lambda: loads(broker) == [4])
    processes.append(member(start))
    until(lambda: loads(broker) == [2, 2])


ZOMBIE = """
from potok.log.clients.consumer import Consumer
from potok.log.errors import PartitionsMovedError
consumer = Consumer(EmbeddedBroker(DATA), "t", group="g", start="earliest", lease=1)
say(len(consumer.poll(timeout=10)))
input()
try:
    consumer.commit()
    say("committed")
except PartitionsMovedError as error:
    say(type(error).__name__)
say(len(consumer.poll()))
"""


def stop(process: subprocess.Popen[str], noticed: Callable[[], bool]) -> None:
    """A process may be stopped while it holds the lock of the metadata, which stops everybody else, too."""
    for _ in range(5):
        process.send_signal(signal.SIGSTOP)
        with suppress(AssertionError):
            until(noticed, 6)
            return
        process.send_signal(signal.SIGCONT)
    pytest.fail("nobody noticed that the process had stopped")


def test_a_member_that_slept_through_its_lease_cannot_commit(start: Start, broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 1)
    broker.append("t", [LogRecord(None, b"%d" % n) for n in range(5)])
    zombie = start(ZOMBIE)
    assert zombie.stdout is not None and zombie.stdin is not None
    assert zombie.stdout.readline() == "5\n"
    heir = member(start, lease=3600)
    until(lambda: loads(broker) == [0, 1])
    stop(zombie, lambda: broker.committed("g", "t") == {0: 5})
    zombie.stdin.write("\n")
    zombie.stdin.flush()
    zombie.send_signal(signal.SIGCONT)
    out, err = zombie.communicate(timeout=30)
    assert (out.split(), err) == (["PartitionsMovedError", "0"], "")
    assert said(heir) == [str(n) for n in range(5)]


FORGETFUL = """
from potok.log.clients.consumer import Consumer
consumer = Consumer(EmbeddedBroker(DATA), "t", group="g", lease=3600)
say(len(consumer.assignment()))
"""


def test_a_program_that_ends_without_closing_leaves_at_once(run, broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 4)
    done = run(FORGETFUL)
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr
    assert broker.describe_group("g").members == ()
