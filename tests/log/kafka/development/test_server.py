from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from log.records import batch_of, values
from potok.log.broker import Broker, PublishedBatch
from potok.log.kafka.development.server import KafkaServer
from potok.log.kafka.errors import PortTaken, ServerNotStarted
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.settings import Settings

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus

CACHE = Settings.load().cache_path


def test_the_server_of_the_tests_answers_on_this_machine_only(kafka: ServerStatus) -> None:
    assert kafka.is_up
    assert kafka.url == f"kafka://127.0.0.1:{kafka.port}"
    assert AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=20).brokers
    own = socket.gethostbyname(socket.gethostname())
    if not own.startswith("127."):
        with pytest.raises(OSError), socket.create_connection((own, kafka.port), timeout=5):
            pass


@pytest.mark.kill
def test_a_killed_server_resumes_with_its_records_and_clients(kafka: ServerStatus, tmp_path: Path) -> None:
    server = KafkaServer(tmp_path / "k", CACHE)
    assert not server.status().is_up
    assert server.stop() is False
    began = server.start(0)
    try:
        assert KafkaServer(tmp_path / "k", CACHE).status() == began
        assert server.start(0) == began
        log = open_broker(f"{began.url}?home={tmp_path / 'home'}")
        log.create_topic("t")
        publish(log, 1)
        os.kill(began.pid, signal.SIGKILL)
        assert server._is_gone(20)
        assert server.status().pid == 0
        # Whoever writes while the server is gone waits for it.
        waiting = threading.Thread(target=publish, args=(log, 2))
        waiting.start()
        again = server.start(began.port)
        waiting.join()
        assert again.pid != began.pid
        log.append("t", [LogRecord(b"k", b"3")])
        assert values(log, "t") == [b"1", b"2", b"3"]
        log.close()
    finally:
        assert server.stop() is True
    assert not server.status().is_up
    assert not server.files.state.exists()


UP = """
import sys
from pathlib import Path
from potok.log.kafka.development.server import KafkaServer
KafkaServer(sys.argv[1], Path(sys.argv[2])).start(0)
"""


@pytest.mark.kill
def test_a_server_whose_starter_was_killed_is_found_waited_for_and_stopped(kafka: ServerStatus, tmp_path: Path) -> None:
    starter = subprocess.Popen([sys.executable, "-c", UP, str(tmp_path), str(CACHE)])
    server = KafkaServer(tmp_path, CACHE)
    while not server.files.pid.exists():
        assert starter.poll() is None
    starter.kill()
    starter.wait()
    try:
        started = server.status()
        assert started.is_up
        assert not server.accepts_connections(), "it has hardly started"
        assert server.start(0) == started
        assert server.accepts_connections()
    finally:
        assert server.stop() is True
    assert not server.status().is_up


def publish(log: Broker, number: int) -> None:
    staged = [log.stage(Path(), "t", 0, batch_of([b"%d" % number]))]
    log.publish(staged, {"n": b"%d" % number}, {}, PublishedBatch("q", number, {"t": {0: number}}))


def test_a_process_that_merely_has_the_recorded_number_is_not_ended(tmp_path: Path) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        server = KafkaServer(tmp_path, CACHE)
        server.files.lock.touch()
        server.files.write_state({"port": 1, "version": "0"})
        server.files.pid.write_text(f"{bystander.pid}\n")
        assert not server.status().is_up
        assert server.stop() is False
        assert bystander.poll() is None
    finally:
        bystander.communicate(b"\n", timeout=20)


def test_a_port_in_use_is_reported_before_anything_starts(kafka: ServerStatus, tmp_path: Path) -> None:
    with pytest.raises(PortTaken, match=rf"port {kafka.port} .*\n.*--port 0"):
        KafkaServer(tmp_path, CACHE).start(kafka.port)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_fails_to_start_is_reported_with_its_last_error(kafka: ServerStatus, tmp_path: Path) -> None:
    server = KafkaServer(tmp_path, CACHE)
    server.files.records.mkdir()
    (server.files.records / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=other\n")
    with pytest.raises(ServerNotStarted, match="Stored node id 7") as raised:
        server.start(0)
    assert str(server.files.log) in raised.value.hint
    assert not server.status().is_up


def test_two_do_not_start_one_server_at_once(tmp_path: Path) -> None:
    server = KafkaServer(tmp_path, CACHE)
    with server._taken_lock(), pytest.raises(ServerNotStarted, match="another process is starting it"):
        KafkaServer(tmp_path, CACHE).start(0)
