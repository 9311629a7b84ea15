from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from potok.errors import LogError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import BrokerClosed
from potok.records.log_record import LogRecord
from potok.runtime.queries.log_maintenance import LogMaintenance


class Scripted(EmbeddedBroker):
    """A broker whose upkeep does what the test says, round after round."""

    rounds: list[Exception | None]
    ended: threading.Event
    turn: threading.Event
    """Set, unless a test holds the rounds back."""

    def maintain(self) -> None:
        assert self.turn.wait(30)
        if not self.rounds:
            self.ended.set()
            return
        step = self.rounds.pop(0)
        if step is not None:
            raise step


def scripted(directory: Path, *rounds: Exception | None) -> Scripted:
    broker = Scripted(directory)
    broker.rounds, broker.ended, broker.turn = list(rounds), threading.Event(), threading.Event()
    broker.turn.set()
    return broker


def test_maintenance_errors_are_logged_and_retried_in_the_next_round(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = scripted(tmp_path, None, LogError("no room"), OSError("torn"), None)
    upkeep = LogMaintenance(broker, 0.001)
    with caplog.at_level(logging.WARNING):
        upkeep.start()
        assert broker.ended.wait(30)
    upkeep.stop()
    assert [record.message for record in caplog.records] == [
        "log maintenance failed: no room",
        "log maintenance failed: torn",
    ]


def test_a_closed_broker_ends_it(tmp_path: Path) -> None:
    broker = scripted(tmp_path, BrokerClosed("x"), None)
    broker.turn.clear()
    upkeep = LogMaintenance(broker, 0.001)
    upkeep.start()
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "potok-upkeep"]
    broker.turn.set()
    thread.join(30)
    assert not thread.is_alive()
    assert broker.rounds == [None]


def test_records_are_compacted_while_a_query_runs(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    for n in range(5):
        broker.append("t", [LogRecord(b"a", b"%d" % n)])
    upkeep = LogMaintenance(broker, 0.001)
    upkeep.start()
    while broker.describe_topic("t").records > 2 or broker.describe_topic("t").dirty_ratio:
        assert any(thread.name == "potok-upkeep" for thread in threading.enumerate())
    upkeep.stop()
