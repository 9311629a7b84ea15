"""Kill a server while it handles a command: sent again with its key, the command runs once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.testing.outputs import read_outputs

pytestmark = [pytest.mark.kill, pytest.mark.timeout(120)]


@contextmanager
def serving(directory: Path, failpoint: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kill.command_server_program", str(directory)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "POTOK_FAILPOINT": failpoint},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def send(url: str, key: str = "k1") -> httpx.Response:
    body = {"order_id": "o1", "note": "n", "times": 3}
    return httpx.post(f"{url}/commands/orders/o1/Note", json=body, headers={"Idempotency-Key": key}, timeout=30)


def events(directory: Path) -> int:
    broker = EmbeddedBroker.shared(directory)
    return len(list(read_outputs(broker, "order-events")))


@pytest.mark.parametrize(
    ("failpoint", "was_sent"),
    [
        ("log.append.written", False),
        ("log.append.synced", False),
        ("log.append.committed", True),
        ("log.publish.before", True),
        ("log.publish.committed", True),
        ("ledger.committed", True),
    ],
)
def test_a_command_whose_server_dies_before_it_answers_runs_once(
    tmp_path: Path, failpoint: str, was_sent: bool
) -> None:
    with serving(tmp_path, failpoint) as (process, url):
        with pytest.raises(httpx.HTTPError):
            send(url)
        assert process.wait(30) != 0
    with serving(tmp_path) as (_, url):
        answer = send(url)
        assert (answer.status_code, answer.headers["ETag"]) == (200, '"3"')
        assert answer.json()["repeated"] is was_sent
        assert send(url).json()["events"] == answer.json()["events"]
        assert send(url, "k2").headers["ETag"] == '"6"'
    assert events(tmp_path) == 6


def test_a_command_whose_client_is_gone_runs_once(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, url):
        address = urlsplit(url)
        body = b'{"order_id": "o1", "note": "n", "times": 3}'
        head = (
            f"POST /commands/orders/o1/Note HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Idempotency-Key: k1\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        for _ in range(3):
            with socket.create_connection((address.hostname, address.port)) as connection:
                connection.sendall(head.encode() + body)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        answer = send(url)
        assert (answer.status_code, answer.headers["ETag"]) == (200, '"3"')
    assert events(tmp_path) == 3
