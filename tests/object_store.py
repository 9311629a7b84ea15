"""A server of the S3 protocol for all tests that ask for it, with a bucket, and a proxy in front that causes faults."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

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
def directory_url(tmp_path: Path) -> str:
    """A location for objects in a directory."""
    return f"object+file://{tmp_path}/shared"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache directory of this test, which holds the copies of shards."""
    monkeypatch.setenv("POTOK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


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
