"""The whole program of the examples, run as its users run it: as a worker, and asked over HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import uuid
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from faust.shop import order
from log.waiting import until

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus

SEED = Path(__file__).parents[2] / "examples" / "faust_orders.py"
TIMEOUT_S = 120.0


def program(directory: Path, broker: str, orders: str = "orders") -> Path:
    """The example on another log, where its topics have another name."""
    text = SEED.read_text().replace("file:./data", broker)
    text = text.replace('app.topic("orders"', f'app.topic("{orders}"')
    found = directory / "shop.py"
    found.write_text(text.replace('app.topic("high-value-orders"', f'app.topic("high-value-{orders}"'))
    return found


class Worker:
    """A worker in a process of its own, and a client of its pages."""

    def __init__(self, directory: Path, *command: str) -> None:
        environment = {**os.environ, "POTOK_DRIVER_MEMORY": "512m", "PYTHONUNBUFFERED": "1"}
        environment.pop("POTOK_BROKER", None)
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        self.process = subprocess.Popen([sys.executable, *command], cwd=directory, env=environment, **pipes)
        self.said: list[str] = []
        self._url: Future[str] = Future()
        self._listener = threading.Thread(target=self._listen)

    def __enter__(self) -> Worker:
        self._listener.start()
        self.client = httpx.Client(base_url=self._url.result(TIMEOUT_S), timeout=60)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self._listener.join()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if found := re.search(r"pages of order-processor: (http://\S+)", line):
                self._url.set_result(found[1])
        if not self._url.done():
            self._url.set_exception(AssertionError("".join(self.said)))

    def stop(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        code = self.process.wait(TIMEOUT_S)
        self._listener.join()
        assert code == 0, "".join(self.said)

    def count(self, user: str) -> int:
        assert self.process.poll() is None, "".join(self.said)
        response = self.client.get(f"/stats/{user}/")
        assert response.status_code == 200, (response.text, "".join(self.said))
        return int(response.json()["order_count"])

    def sees(self, user: str, count: int) -> None:
        until(lambda: self.count(user) == count, TIMEOUT_S)


def send(client: httpx.Client, topic: str, *orders: dict[str, object]) -> None:
    records = [{"key": str(item["order_id"]), "value": item} for item in orders]
    client.post(f"/topics/{topic}/records", json=records).raise_for_status()


def check(directory: Path, path: Path, topic: str) -> None:
    """One order by command, the others over HTTP; a malformed one; and the same again after a restart."""
    first = [sys.executable, str(path), "send", topic, json.dumps(order(0, "u1", 120.5))]
    subprocess.run(first, cwd=directory, check=True)
    with Worker(directory, str(path), "worker", "-l", "info", "--web-port", "0") as worker:
        client = worker.client
        assert worker.count("nobody") == 0
        worker.sees("u1", 1)
        send(client, topic, order(1, "u1", 20.0), order(2, "u2", 200.0))
        client.post(f"/topics/{topic}/records", json={"key": "x", "value": "no order"}).raise_for_status()
        send(client, topic, order(3, "u1", 1.0))
        worker.sees("u1", 3)
        assert client.get("/stats/u1/").json() == {"user_id": "u1", "order_count": 3, "total_spent": 141.5}
        assert client.get("/tables/user_totals/u2").json() == {"KEY": "u2", "VALUE": 200.0}
        hours = client.get("/tables/hourly_stats/u1").json()["rows"]
        # Two of them, if one begins while this runs.
        assert (sum(hour["TOTAL"] for hour in hours), sum(hour["COUNT"] for hour in hours)) == (141.5, 3)
        large = client.post("/sql", json={"sql": f"SELECT order_id FROM `{_sql(topic)}`;"}).json()["results"][0]["rows"]
        assert sorted(large) == [["o0"], ["o2"]]
        worker.stop(signal.SIGTERM)
    with Worker(directory, str(path), "worker", "--web-port", "0") as worker:
        assert worker.count("u1") == 3
        send(worker.client, topic, order(4, "u1", 1.0))
        worker.sees("u1", 4)
        worker.stop(signal.SIGINT)


def _sql(topic: str) -> str:
    return f"high-value-{topic}".replace("-", "_").upper()


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_the_program_answers_over_http_on_the_embedded_log(tmp_path: Path) -> None:
    check(tmp_path, program(tmp_path, "file:./data"), "orders")


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_the_program_answers_over_http_on_kafka(kafka: ServerStatus, tmp_path: Path) -> None:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    check(tmp_path, program(tmp_path, f"{kafka.url}?home={tmp_path / 'home'}", topic), topic)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_potok_run_serves_the_pages_of_a_program_too(tmp_path: Path) -> None:
    path = program(tmp_path, "file:./elsewhere")
    potok = ("-c", "from potok.cli.main import main; main()", "run", str(path), "--web-port", "0")
    with Worker(tmp_path, *potok) as worker:
        until(lambda: worker.client.get("/queries").json()["queries"][0]["state"] == "RUNNING", TIMEOUT_S)
        send(worker.client, "orders", order(1, "u1", 20.0))
        worker.sees("u1", 1)
        assert (tmp_path / "elsewhere").exists()
        worker.stop(signal.SIGINT)
