"""A server of the S3 protocol for the lakes, with a bucket."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

import pytest

BUCKET, LOGIN = "lake", ("tester", "not-a-secret")
_TIMEOUT_S = 60.0


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of the server, which is started once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _create_bucket(server, f"{address}/{BUCKET}")
            yield address
        finally:
            server.terminate()


def _create_bucket(server: subprocess.Popen[bytes], url: str) -> None:
    end = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=10).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > end:
                pytest.fail("the S3 server did not start", pytrace=False)
            time.sleep(0.05)
