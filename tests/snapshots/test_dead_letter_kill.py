"""kill -9 during a replay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from log.records import read_all
from potok.dead_letters.dead_letters import DeadLetters
from potok.log.failpoint import VARIABLE
from potok.log.open import open_broker
from snapshots.dead_letters import QUERY, TOPIC, dead_letter, fill

pytestmark = pytest.mark.kill

PROGRAM = """
import sys
from potok.log.open import open_broker
from potok.dead_letters.dead_letters import DeadLetters
DeadLetters(open_broker(sys.argv[1]), "shop").replay()
"""


def replay_killed_at(url: str, failpoint: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, url],
        env={**os.environ, VARIABLE: failpoint},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(("step", "done"), [("before", 0), ("written", 0), ("synced", 0), ("committed", 2)])
def test_on_the_embedded_log_records_and_metadata_are_committed_together(tmp_path: Path, step: str, done: int) -> None:
    url = f"file:{tmp_path / 'data'}"
    broker = open_broker(url)
    fill(broker, dead_letter(1), dead_letter(4))
    broker.close()
    replay_killed_at(url, f"log.publish.{step}:1")
    broker = open_broker(url)
    box = DeadLetters(broker, QUERY)
    assert (len(read_all(broker, "orders")), box.count()) == (6 + done, 2 - done)
    box.replay()
    assert [record.value for record in read_all(broker, "orders")[6:]] == [b"order 1", b"order 4"], "once, whatever"
    broker.close()


def test_on_kafka_no_record_is_lost_but_some_may_be_duplicated(kafka, tmp_path: Path) -> None:
    url = f"{kafka.url}?home={tmp_path / 'data'}"
    broker = open_broker(url)
    fill(broker, dead_letter(1))
    replay_killed_at(url, "log.publish.sent:1")
    box = DeadLetters(broker, QUERY)
    assert (len(read_all(broker, "orders")), box.count()) == (7, 1)
    assert (box.replay().records, box.count()) == (1, 0)
    assert len(read_all(broker, "orders")) == 8
    for topic in ("orders", TOPIC):
        broker.delete_topic(topic)
    broker.close()
