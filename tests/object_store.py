"""A server of the S3 protocol for all tests that ask for it, with a bucket, and a proxy that causes faults."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

TIMEOUT_S = 60.0
BUCKET = "potok-tests"

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "not-a-secret", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="session")
def s3_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server. The credentials are in the environment while it runs, also of child processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    log = tmp_path_factory.mktemp("s3") / "log"
    with log.open("wb") as out:
        words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(words, stdout=out, stderr=out)
    before = {name: os.environ.get(name) for name in CREDENTIALS}
    os.environ |= CREDENTIALS
    try:
        _create_bucket(endpoint, process, log)
        yield endpoint
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@pytest.fixture
def s3_url(s3_endpoint: str) -> str:
    """A location in the bucket that no other test uses."""
    return url_at(s3_endpoint)


@pytest.fixture
def faulty(s3_endpoint: str) -> Iterator[FaultyProxy]:
    """A proxy in front of the server."""
    proxy = FaultyProxy(s3_endpoint.removeprefix("http://"))
    yield proxy
    proxy.close()


@pytest.fixture
def directory_url(tmp_path: Path) -> str:
    """A location for objects in a directory."""
    return f"object+file://{tmp_path}/shared"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache directory of this test, which holds the copies of shards."""
    monkeypatch.setenv("POTOK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


class FaultyProxy:
    """Forwards requests, except for the next ones of a method that are to meet a fault.

    `refuse` answers 503 and does not forward; `reset` closes the connection instead; `lose` forwards the request, and
    closes the connection instead of passing the answer on.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.faults: list[tuple[str, str]] = []
        self.met: list[tuple[str, str]] = []
        self.is_shut = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        return url_at(f"http://127.0.0.1:{self._server.server_port}")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def shut(self) -> None:
        """Close all connections instead of answering, until `open`."""
        self.is_shut = True

    def open(self) -> None:
        self.is_shut = False

    def fault_of(self, method: str) -> str:
        if self.is_shut:
            return "reset"
        for fault in self.faults:
            if fault[0] == method:
                self.faults.remove(fault)
                self.met.append(fault)
                return fault[1]
        return ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultyProxy

    def _forward(self) -> None:
        fault = self.proxy.fault_of(self.command)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if fault in ("refuse", "reset"):
            self.close_connection = True
            if fault == "refuse":
                self.send_error(503, "SlowDown")
            return
        server = HTTPConnection(self.proxy.target, timeout=TIMEOUT_S)
        server.request(self.command, self.path, body, dict(self.headers))
        answer = server.getresponse()
        data = answer.read()
        server.close()
        if fault == "lose":
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", answer.getheader("Content-Length") or str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _forward

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def url_at(endpoint: str) -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex}?endpoint={endpoint}"


def _create_bucket(endpoint: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT"), timeout=10).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"the S3 server did not start:\n{log.read_text()}", pytrace=False)
            time.sleep(0.05)
