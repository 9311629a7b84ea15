"""`potok gateway`: check a file, receive until a signal, and report the counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.sources.test_appender import values

from potok.log.embedded.embedded_broker import EmbeddedBroker

COMMAND = [sys.executable, "-c", "from potok.cli.main import main; main()", "gateway"]
LISTENER = '[w]\ntype = "webhook"\ntopic = "t"\nlisten = "127.0.0.1:0"\n'


def write(directory: Path, text: str) -> str:
    path = directory / "gateway.toml"
    path.write_text(f'broker = "{directory / "data"}"\n{text}')
    return str(path)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_a_file_is_checked_without_starting_anything(tmp_path: Path) -> None:
    found = run(write(tmp_path, LISTENER), "--check")
    assert (found.returncode, found.stderr.strip()) == (0, f"{tmp_path}/gateway.toml: 1 listener, no errors found")
    assert not (tmp_path / "data").exists()


def test_a_mistake_is_one_error_with_a_hint(tmp_path: Path) -> None:
    found = run(write(tmp_path, LISTENER + "lisen = 1"))
    assert found.returncode == 1
    assert '[w] a webhook listener has no option "lisen"' in found.stderr
    assert 'hint: did you mean "listen"?' in found.stderr
    assert "Traceback" not in found.stderr


def test_its_metrics_and_health_are_served_where_the_option_says(tmp_path: Path) -> None:
    command = [*COMMAND, write(tmp_path, LISTENER), "--metrics", "0", "--log-format", "json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as it:
        assert it.stderr is not None
        metrics = json.loads(it.stderr.readline())["message"].removeprefix("metrics: ")
        address = json.loads(it.stderr.readline())["message"].partition(" on ")[2].partition(",")[0]
        assert httpx.post(f"http://{address}/", json=1).status_code == 202
        lines = httpx.get(metrics).text.splitlines()
        ready = httpx.get(metrics.replace("/metrics", "/readyz"))
        it.send_signal(signal.SIGTERM)
        rest = [json.loads(line) for line in it.stderr.read().splitlines()]
        assert it.wait(30) == 0
    assert 'potok_gateway_landed_total{listener="w"} 1' in lines
    assert (ready.status_code, ready.json()["ok"]) == (200, True)
    assert rest[0]["message"] == "stopping: appending buffered records"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_receives_until_a_signal_and_reports_its_counts(tmp_path: Path, number: signal.Signals) -> None:
    command = [*COMMAND, write(tmp_path, LISTENER), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as it:
        assert it.stdout is not None
        listening = json.loads(it.stdout.readline())
        assert (listening["event"], listening["name"], listening["kind"]) == ("listening", "w", "webhook")
        assert httpx.post(f"http://{listening['address']}/", json=1).status_code == 202
        it.send_signal(number)
        lines = it.stdout.read().splitlines()
        assert it.wait(30) == 0
    stopped = json.loads(lines[-1])
    assert (stopped["event"], stopped["counts"]["landed"], stopped["counts"]["buffered"]) == ("stopped", 1, 0)
    assert values(EmbeddedBroker(tmp_path / "data")) == [b"1"]
