"""Pause a process in the middle of a batch, let another one take its query over, and let the first continue.

The first must stop, name the other and change nothing. While it is paused it holds the lock of its directory. On the
embedded log, the second one gets in because the lock file was removed, as after a lock was lost; where ledger and state
are on a server, because it has a directory of its own, as on another machine.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.snapshots.ledger_view import read_entry
from tests.kill import orders_program
from tests.kill.answer import check

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus

pytestmark = [pytest.mark.kill, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
RECORDS, BATCH = 1_200, 250
DEADLINE_S, LOOK_S = 120.0, 0.02


class Processes:
    """What was started, so that nothing is left behind, not even what is paused."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []

    def start(self, url: str, directory: Path, prefix: str, pause_at: str = "") -> subprocess.Popen[str]:
        directory.mkdir(exist_ok=True)
        path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        environment = {**os.environ, "PYTHONPATH": path, "POTOK_FAILPOINT": pause_at}
        words = [sys.executable, "-m", "tests.kill.command_without_spark", url, str(BATCH), prefix]
        process = subprocess.Popen(
            words,
            cwd=directory,
            env={**environment, "POTOK_FAILPOINT_SIGNAL": "SIGSTOP"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait(DEADLINE_S)


@pytest.fixture
def processes() -> Iterator[Processes]:
    processes = Processes()
    yield processes
    processes.end()


def wait_until_paused(process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG) is None:
        assert process.poll() is None, f"it ended before it was paused: {process.communicate()[1]}"
        assert time.monotonic() < deadline, "it was never paused"
        time.sleep(LOOK_S)


def fill(broker: Broker, prefix: str) -> None:
    broker.create_topic(f"{prefix}orders", 2)
    broker.append(f"{prefix}orders", [LogRecord(*orders_program.record(number)) for number in range(RECORDS)])


def check_refused(first: subprocess.Popen[str], prefix: str, other: int) -> None:
    """Let the paused process continue: it ends as one that has lost its query."""
    first.send_signal(signal.SIGCONT)
    _, reported = first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 3, reported
    assert f'query "{prefix}orders-query" was taken over by process {other} on {socket.gethostname()}' in reported
    assert "Traceback" not in reported


def check_all_read(broker: Broker, prefix: str) -> None:
    entry = read_entry(broker, f"{prefix}orders-query")
    assert entry is not None
    assert sum(entry.offsets.topics[f"{prefix}orders"].values()) == RECORDS
    check(broker, prefix)


def check_takeover(
    broker: Broker,
    prefix: str,
    processes: Processes,
    places: tuple[Path, Path],
    pause_at: str,
    free: Callable[[], None],
) -> None:
    """The second process has committed two batches, and is in the middle of another one, when the first continues."""
    first = processes.start(broker.url, places[0], prefix, pause_at)
    wait_until_paused(first)
    free()
    second = processes.start(broker.url, places[1], prefix, "ledger.before:3")
    wait_until_paused(second)
    check_refused(first, prefix, second.pid)
    second.send_signal(signal.SIGCONT)
    _, reported = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 0, reported
    check_all_read(broker, prefix)


@pytest.mark.parametrize(
    "pause_at",
    ["epoch.started", "state.before", "state.written:3", "ledger.before", "ledger.before:2", "ledger.committed"],
)
def test_a_process_paused_on_the_embedded_log_gives_way_to_the_one_that_took_its_query_over(
    tmp_path: Path, processes: Processes, pause_at: str
) -> None:
    directory = tmp_path / "data"
    broker = EmbeddedBroker.shared(directory)
    fill(broker, "")
    lock = directory / "queries" / "orders-query" / "lock"
    check_takeover(broker, "", processes, (tmp_path, tmp_path), pause_at, lock.unlink)


PAUSES = [
    "state.written",
    "ledger.before",
    "log.publish.before:2",
    "log.publish.owned",
    "log.publish.written",
    "log.publish.sent:2",
    "log.publish.committed",
]


@pytest.mark.parametrize(
    ("kind", "pause_at"),
    [
        *itertools.product(["redis", "postgres"], PAUSES),
        # The fence of its cells, and that of its ledger; the log is the same.
        ("cassandra", "state.before"),
        ("cassandra", "ledger.before"),
        ("s3", "objects.delta.before:3"),
        ("s3", "objects.metadata.before:8"),
        ("s3", "log.publish.sent:2"),
    ],
)
def test_a_process_paused_on_kafka_gives_way_to_the_one_that_took_its_query_over_on_another_machine(
    kind: str,
    kafka: ServerStatus,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    processes: Processes,
    pause_at: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POTOK_CACHE_DIR", str(tmp_path / "cache"))
    prefix = f"{uuid.uuid4().hex}-"
    broker = open_broker(f"{kafka.url}?home={request.getfixturevalue(f'{kind}_url')}")
    fill(broker, prefix)
    places = tmp_path / "one", tmp_path / "two"
    check_takeover(broker, prefix, processes, places, pause_at, lambda: None)
    broker.close()
