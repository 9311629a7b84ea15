"""A database on Spark behind a port: from a statement to a row, by HTTP alone, and again after a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.server.server import Server
from potok.settings import Settings
from potok.statements.database import Database

if TYPE_CHECKING:
    from pyspark import SparkContext

SCRIPT = """
CREATE STREAM orders (id VARCHAR KEY, user_id VARCHAR, amount DOUBLE) WITH (KAFKA_TOPIC = 'orders', PARTITIONS = 2);
CREATE TABLE totals AS SELECT user_id, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY user_id;
"""


@contextmanager
def served(directory: Path) -> Iterator[httpx.Client]:
    broker = EmbeddedBroker.shared(directory)
    with Database(broker, Settings(broker=f"file:{directory}", shards=2)) as database:
        database.start()
        with Server(database, port=0) as server, httpx.Client(base_url=server.url, timeout=120) as client:
            yield client
    broker.close()


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_database_can_be_used_through_http_alone_and_resumes_after_a_restart(
    spark: SparkContext, tmp_path: Path
) -> None:
    with served(tmp_path) as client:
        client.post("/ksql", json={"ksql": SCRIPT}).raise_for_status()
        with client.stream("GET", "/tables/totals/changes") as answer:
            changes = (json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: "))
            send(client, "o1", "ann", 2.5)
            first = next(changes)
            assert (first["key"], first["row"]["TOTAL"]) == ({"USER_ID": "ann"}, 2.5)
            assert client.get("/tables/totals/ann").json() == {"USER_ID": "ann", "N": 1, "TOTAL": 2.5}
            send(client, "o2", "ann", 1.0)
            second = next(changes)
        assert second["row"]["TOTAL"] == 3.5
        grouped = "SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id EMIT CHANGES LIMIT 1;"
        body = {"sql": grouped, "properties": {"auto.offset.reset": "earliest"}}
        rows = client.post("/query-stream", json=body).text.splitlines()[1:]
        assert [json.loads(row)[0] for row in rows] == ["ann"]
        (query,) = client.get("/queries").json()["queries"]
        assert query["state"] == "RUNNING"
    with served(tmp_path) as client:
        last = f"{first['partition']}:{first['offset'] + 1}"
        with client.stream("GET", "/tables/totals/changes", headers={"Last-Event-ID": last}) as answer:
            changes = (json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: "))
            assert next(changes) == second
            send(client, "o3", "ann", 0.5)
            assert next(changes)["row"] == {"USER_ID": "ann", "N": 3, "TOTAL": 4.0}
        answer = client.post("/query-stream", json={"sql": "SELECT total FROM totals WHERE user_id = 'ann';"})
        assert answer.text.splitlines()[1:] == ["[4.0]"]


def send(client: httpx.Client, order: str, user: str, amount: float) -> None:
    body = {"key": order, "value": {"user_id": user, "amount": amount}}
    client.post("/topics/orders/records", json=body, headers={"Idempotency-Key": order}).raise_for_status()
