"""Workers in processes of their own, killed in the middle of their work: every record is done in the end."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Callable

import pytest

from log.records import read_all
from log.waiting import until
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.queues.queue import Queue
from potok.log.queues.queue_state import QueueCounts
from potok.records.log_record import LogRecord

pytestmark = pytest.mark.kill

Start = Callable[..., subprocess.Popen[str]]

WORKER = """
from potok.log.queues.queue import Queue
with Queue(EmbeddedBroker(DATA), "work", "g", visibility=60) as queue:
    while queue.counts().ready:
        for delivery in queue.receive(20):
            say(delivery.json())
            delivery.ack()
"""


def fill(broker: EmbeddedBroker, count: int, partitions: int = 1) -> None:
    broker.create_topic("work", partitions)
    broker.append("work", [LogRecord(b"k%d" % n, b"%d" % n) for n in range(count)])


@pytest.mark.parametrize("partitions", [1, 3])
def test_processes_get_different_records(start: Start, broker: EmbeddedBroker, partitions: int) -> None:
    fill(broker, 2_000, partitions)
    workers = [start(WORKER) for _ in range(3)]
    seen: Counter[int] = Counter()
    for worker in workers:
        out, err = worker.communicate(timeout=60)
        assert (worker.returncode, err) == (0, "")
        seen.update(map(int, out.split()))
    assert seen == Counter(range(2_000))
    assert Queue(broker, "work", "g").counts() == QueueCounts()


DOOMED = """
from potok.log.queues.queue import Queue
queue = Queue(EmbeddedBroker(DATA), "work", "g", visibility=1)
done = queue.receive(10)
for delivery in done:
    delivery.ack()
queue.flush()
held = queue.receive(10)
say(*(delivery.json() for delivery in done))
say(*(delivery.json() for delivery in held))
input()
"""


def test_what_a_killed_worker_had_comes_again_and_what_it_acknowledged_does_not(
    start: Start, broker: EmbeddedBroker
) -> None:
    fill(broker, 30)
    doomed = start(DOOMED)
    assert doomed.stdout is not None
    done, held = (set(map(int, doomed.stdout.readline().split())) for _ in range(2))
    assert (len(done), len(held)) == (10, 10)
    doomed.send_signal(signal.SIGKILL)
    doomed.wait(30)
    with Queue(broker, "work", "g", visibility=60) as queue:
        found: dict[int, int] = {}

        def receive() -> bool:
            found.update((delivery.json(), delivery.deliveries) for delivery in queue.receive(50))
            return len(found) == 20

        until(receive)
        assert set(found) == set(range(30)) - done
        assert {number for number, deliveries in found.items() if deliveries > 1} == held


POISONED = """
import os, signal
from potok.log.queues.queue import Queue
with Queue(EmbeddedBroker(DATA), "work", "g", visibility=0.5, max_deliveries=2) as queue:
    while True:
        for delivery in queue.receive(1, timeout=0.1):
            if delivery.json() == 7:
                os.kill(os.getpid(), signal.SIGKILL)
            delivery.ack()
            queue.flush()
            say(delivery.json())
        counts = queue.counts()
        if counts.ready == counts.out == counts.waiting == 0:
            break
"""


def test_a_record_that_kills_its_workers_is_set_aside_and_no_other(start: Start, broker: EmbeddedBroker) -> None:
    fill(broker, 20)
    seen: list[int] = []
    ends = []
    while not ends or ends[-1] != 0:
        worker = start(POISONED)
        out, err = worker.communicate(timeout=60)
        seen += map(int, out.split())
        ends.append(worker.returncode)
        assert len(ends) < 6, err
    assert ends[-1] == 0 and set(ends[:-1]) == {-signal.SIGKILL}
    assert sorted(seen) == [n for n in range(20) if n != 7]
    letters = read_all(broker, "work-g-dead-letters")
    assert [letter.value for letter in letters] == [b"7"]
