"""Kill a gateway on each side of an append: what was answered with 202 is in the log, and with an id only once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from tests.sources.test_appender import values

pytestmark = [pytest.mark.kill, pytest.mark.timeout(240)]

REQUESTS = 60
NOBODY = "http://127.0.0.1:9"
"""The address of a gateway that was killed while it read the file, before it listened."""

LISTENERS = """
[w]
type = "webhook"
topic = "t"
listen = "127.0.0.1:0"
id = "header:X-Id"
[f]
type = "files"
topic = "lines"
path = "{directory}/app.log"
poll_interval = "5 ms"
"""


@contextmanager
def gateway(directory: Path, failpoint: str) -> Iterator[str]:
    """Run a gateway until it is killed at a point or, without one, to its orderly end."""
    (directory / "gateway.toml").write_text(LISTENERS.format(directory=directory))
    command = [sys.executable, "-c", "from potok.cli.main import main; main()", "gateway", "gateway.toml", "--json"]
    with subprocess.Popen(
        command,
        cwd=directory,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "POTOK_FAILPOINT": failpoint, "POTOK_BROKER": "file:./data"},
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield "http://" + json.loads(line)["address"] if line else NOBODY
        if not failpoint:
            process.terminate()
        assert process.wait(30) == (-signal.SIGKILL if failpoint else 0)


def send(url: str, number: int) -> bool:
    """Return whether a request was acknowledged."""
    try:
        response = httpx.post(url, json=number, headers={"X-Id": str(number)}, timeout=30)
    except httpx.HTTPError:
        return False
    return response.status_code == 202


def test_a_gateway_killed_around_its_appends_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    left = list(range(REQUESTS))
    (tmp_path / "app.log").write_bytes(b"".join(b"%d\n" % number for number in range(500)))
    points = (
        *("gateway-before-append:7", "gateway-after-append:5", "gateway-after-append:1"),
        *("log.append.written:3", "log.append.committed:2", "gateway-after-position:3"),
    )
    for failpoint in (*points, ""):
        with gateway(tmp_path, failpoint) as url:
            while left and send(url, left[0]):
                left.pop(0)
                if failpoint:
                    with (tmp_path / "app.log").open("ab") as file:
                        file.write(b"more %d\n" % left[0] if left else b"end\n")
    assert left == []
    broker = EmbeddedBroker(tmp_path / "data")
    assert Counter(values(broker)) == Counter(b"%d" % number for number in range(REQUESTS))
    lines = values(broker, "lines")
    assert set((tmp_path / "app.log").read_bytes().splitlines()) == set(lines)
