"""Kill the process that sends webhooks around each durable step: nothing is lost, and a repeated id has one body."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from potok.log.failpoint import VARIABLE
from potok.log.open import open_broker
from potok.runtime.webhooks.records import deliveries_topic
from potok.runtime.webhooks.writer import WebhookWriter
from potok.sinks.sink_spec import Batch, Rows
from tests.kill.webhooks_program import STEP
from tests.sinks.web import Site, web_server

pytestmark = [pytest.mark.kill, pytest.mark.timeout(120)]

COUNT = 60
CONCURRENCY = 4
FAILPOINTS = ["webhooks.sent:1", "webhooks.recorded:1", "webhooks.sent:5", "webhooks.recorded:3", ""]


def run(where: str, site: Site, epoch: int, failpoint: str) -> int:
    words = [sys.executable, "-m", "tests.kill.webhooks_program", where, site.url, str(epoch), str(COUNT)]
    environment = {**os.environ, VARIABLE: failpoint}
    finished = subprocess.run(
        words, cwd=Path(__file__).parents[2], env=environment, timeout=60, capture_output=True, check=False
    )
    assert finished.returncode in (0, -signal.SIGKILL), finished.stderr.decode()[-3_000:]
    return finished.returncode


def test_every_delivery_is_taken_and_a_crash_repeats_only_what_was_in_flight(tmp_path: Path) -> None:
    where = f"file:{tmp_path / 'data'}"
    broker = open_broker(where)
    broker.create_topic(deliveries_topic("q"), 1)
    bodies = [b'{"n": %d}' % number for number in range(COUNT)]
    rows = Rows([None] * COUNT, bodies, np.zeros(COUNT, np.int64))
    broker.append_staged(WebhookWriter(broker, "q", STEP).stage(Batch(1, 1), rows, None)[0])
    dice = random.Random(7)
    with web_server() as site:
        site.answer = lambda body, tries: dice.choice([200, 200, 200, 500])
        codes = [run(where, site, epoch, failpoint) for epoch, failpoint in enumerate(FAILPOINTS, 1)]
    broker.close()
    assert codes == [-signal.SIGKILL] * 4 + [0]
    assert sorted(body["n"] for body in site.by_key.values()) == list(range(COUNT))
    assert len({(key, body["n"]) for key, body in site.requests}) == COUNT
