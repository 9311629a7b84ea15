"""Tables of a program over HTTP, from the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.log.waiting import until

from cli.shop import fill, write_program
from potok.log.clients.producer import Producer
from potok.log.open import open_broker
from potok.server.address import Address, NotAnAddress


@pytest.mark.parametrize(
    ("text", "address"),
    [("8088", ("127.0.0.1", 8088)), ("0.0.0.0:0", ("0.0.0.0", 0)), ("[::1]:80", ("::1", 80)), ("shop:1", ("shop", 1))],
)
def test_an_address_is_a_port_or_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert Address.of(text) == address


@pytest.mark.parametrize("text", ["", "host", "host:", ":80", "1:2:port", "65536"])
def test_anything_else_is_not_an_address(text: str) -> None:
    with pytest.raises(NotAnAddress):
        Address.of(text)


def test_only_a_query_that_exists_is_served(potok, tmp_path: Path) -> None:
    fill(tmp_path / "data", write_program(tmp_path / "program"))
    refused = potok("serve", "--query", "shops", "--port", "0")
    assert (refused.code, 'there is no query "shops"' in refused.err) == (1, True)


def test_other_machines_need_tokens_for_tables_of_programs_too(potok, tmp_path: Path) -> None:
    fill(tmp_path / "data", write_program(tmp_path / "program"))
    refused = potok("serve", "--query", "shop", "--host", "0.0.0.0", "--port", "0")
    assert (refused.code, "--tokens" in refused.err) == (1, True)


@contextmanager
def served(directory: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command in a process of its own, and the address that it names on stderr."""
    program = [sys.executable, "-c", "from potok.cli.main import main; main()", *words]
    environment = {name: value for name, value in os.environ.items() if name != "POTOK_BROKER"}
    process = subprocess.Popen(
        program, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"tables of shop: (http://\S+)/tables", line):
                yield process, found[1]
                break
        else:
            raise AssertionError("the process ended without an address")
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()


def stopped(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(60)


def test_a_query_of_another_process_is_served_without_spark(tmp_path: Path) -> None:
    fill(tmp_path / "data", write_program(tmp_path / "program"))
    with served(tmp_path, "serve", "--query", "shop", "--port", "0") as (process, url):
        assert httpx.get(f"{url}/tables/order_counts/anna").json() == {"KEY": "anna", "VALUE": 3}
        assert stopped(process) == 0


@pytest.mark.spark
def test_metrics_of_a_program_are_served_next_to_its_tables_and_on_a_port_of_their_own(tmp_path: Path) -> None:
    program = write_program(tmp_path / "program")
    fill(tmp_path / "data", program)
    with served(tmp_path, "run", program, "--metrics", "0", "--serve", "0") as (process, url):
        until(lambda: httpx.get(f"{url}/readyz").status_code == 200, 60)
        lines = httpx.get(f"{url}/metrics").text.splitlines()
        assert 'potok_query_state{query="shop",state="running"} 1' in lines
        assert any(line.startswith('potok_batch_duration_seconds_count{query="shop"') for line in lines)
        assert any(line.startswith('potok_pull_query_seconds_count{kind="key"}') for line in lines)
        assert httpx.get(f"{url}/livez").json()["ok"] is True
        assert stopped(process) == 0


@pytest.mark.spark
def test_a_program_serves_its_tables_while_it_runs(tmp_path: Path) -> None:
    program = write_program(tmp_path / "program")
    fill(tmp_path / "data", program)
    with (
        served(tmp_path, "run", program, "--serve", "0") as (process, url),
        httpx.stream("GET", f"{url}/tables/order_counts/changes", timeout=120) as changes,
    ):
        lines = changes.iter_lines()
        assert next(lines) == "retry: 1000"
        with Producer(open_broker(tmp_path / "data")) as producer:
            producer.send("orders", {"user_id": "anna", "amount": 5.0, "items": []}, partition=0)
        data = next(line for line in lines if line.startswith("data: "))
        assert json.loads(data.removeprefix("data: "))["row"] == {"KEY": "anna", "VALUE": 4}
        assert stopped(process) == 0
