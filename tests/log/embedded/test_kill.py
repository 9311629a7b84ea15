"""kill -9 at every durable step: what was acknowledged is there once, what was not is there whole or not at all."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from log.beside import PUBLISHED, append_batches, publish_batches
from log.records import batch_of, read_all, values
from potok.log.embedded.embedded_broker import EmbeddedBroker

pytestmark = pytest.mark.kill

STEPS = ["before", "written", "synced", "committed"]


@pytest.mark.parametrize("step", STEPS)
def test_an_append_killed_at_any_step_is_whole_or_absent(run, broker: EmbeddedBroker, step: str) -> None:
    killed = run("append_batches(EmbeddedBroker(DATA), 0)", f"log.append.{step}:7")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert [int(line) for line in killed.stdout.split()] == list(range(6))
    seen = Counter(int(value.split(b":")[0]) for part in range(3) for value in values(broker, "t", part) if value)
    assert seen == dict.fromkeys(range(7 if step == "committed" else 6), 30)
    append_batches(broker, len(seen))
    stored = [value for part in range(3) for value in values(broker, "t", part)]
    assert len(set(stored)) == len(stored) == 20 * 30


@pytest.mark.parametrize("step", STEPS)
def test_a_publish_killed_at_any_step_is_whole_or_absent(run, broker: EmbeddedBroker, step: str) -> None:
    killed = run("publish_batches(EmbeddedBroker(DATA))", f"log.publish.{step}:4")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout.split() == ["0", "1", "2"]
    published = 4 if step == "committed" else 3
    assert broker.get_metadata("batch") == b"%d" % (published - 1)
    expect_published(broker, published)
    publish_batches(broker)
    expect_published(broker, 6)


def expect_published(broker: EmbeddedBroker, batches: int) -> None:
    for (topic, part), count in PUBLISHED.items():
        assert values(broker, topic, part) == [b"%d" % n for n in range(batches) for _ in range(count)]


WRITER = """
broker = EmbeddedBroker(DATA)
for n in range(60):
    broker.append("t", [LogRecord(b"k%%d" %% i, b"%s:%%d:%%d" %% (n, i)) for i in range(10)])
    say(n)
"""


def test_processes_that_append_at_once_do_not_disturb_each_other(start, broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 2, segment_bytes=4000)
    processes = {
        name: start(WRITER % name, "log.append.written:20" if name == "doomed" else "")
        for name in ("first", "second", "doomed")
    }
    for _ in range(20):
        broker.append("t", batch_of([b"parent:0:0"] * 5, [b"k0"] * 5))
    acknowledged = {}
    for name, process in processes.items():
        out, err = process.communicate(timeout=60)
        assert process.returncode == (-signal.SIGKILL if name == "doomed" else 0), err
        acknowledged[name] = len(out.split())
    assert acknowledged == {"first": 60, "second": 60, "doomed": 19}
    found: dict[str, list[tuple[int, int]]] = {}
    for part in range(2):
        place: dict[str, list[tuple[int, int]]] = {}
        for record in read_all(broker, "t", part):
            name, batch, row = (record.value or b"").decode().split(":")
            place.setdefault(name, []).append((int(batch), int(row)))
        for name, rows in place.items():
            assert name == "parent" or rows == sorted(rows)
            found.setdefault(name, []).extend(rows)
    assert len(found.pop("parent")) == 100
    for name, rows in found.items():
        assert sorted(rows) == [(batch, row) for batch in range(acknowledged[name]) for row in range(10)]
