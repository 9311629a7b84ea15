"""Few records that a pull query makes many rows of do not fill the memory of the server."""

from __future__ import annotations

import pytest

from limited import run_limited

SERVED = """
import tempfile
import httpx
from potok.log.open import open_broker
from potok.log.clients.producer import Producer
from potok.server.server import Server
from potok.settings import Settings
from potok.statements.database import Database
from potok.statements.session import SqlSession
statements = '''
CREATE STREAM a (k INT, v VARCHAR) WITH (KAFKA_TOPIC = 'a', PARTITIONS = 1);
CREATE STREAM b (k INT, w VARCHAR) WITH (KAFKA_TOPIC = 'b', PARTITIONS = 1);
CREATE STREAM c (k INT, x VARCHAR) WITH (KAFKA_TOPIC = 'c', PARTITIONS = 1);
CREATE STREAM d (xs ARRAY<INT>, payload VARCHAR) WITH (KAFKA_TOPIC = 'd', PARTITIONS = 1);
'''
broker = open_broker(tempfile.mkdtemp())
with Database(broker, Settings(), runs=False) as database, Server(database, port=0) as server:
    SqlSession(database).execute(statements)
    with Producer(broker) as producer:
        for topic, field, size in (("a", "V", 1_000), ("b", "W", 10), ("c", "X", 10)):
            for _ in range(given["rows"]):
                producer.send(topic, b'{"K": 1, "%s": "%s"}' % (field.encode(), b"x" * size))
        for _ in range(100):
            producer.send("d", b'{"XS": [%s], "PAYLOAD": "%s"}' % (b",".join([b"1"] * 1_000), b"x" * 100_000))
    with httpx.Client(base_url=server.url, timeout=200) as client:
        client.post("/sql", json={"sql": "SELECT * FROM a JOIN b ON a.k = b.k LIMIT 1;"})
        client.post("/sql", json={"sql": "SELECT EXPLODE(ARRAY[v]) FROM a LIMIT 1;"})
        limit(1_800)
        answers = []
        for sql in given["statements"]:
            answer = client.post("/sql", json={"sql": sql})
            answers.append([answer.status_code, answer.json().get("type", ""), answer.json().get("detail", "")])
        well = client.post("/sql", json={"sql": "SELECT k FROM a LIMIT 1;"}).status_code
print(json.dumps([well, answers]))
"""
TWO = "a JOIN b ON a.k = b.k"
THREE = f"{TWO} JOIN c ON a.k = c.k"


PAIRS = [f"SELECT COUNT(*) AS n FROM {TWO} GROUP BY a.k;", f"SELECT * FROM {TWO.replace('JOIN', 'FULL OUTER JOIN')};"]
WIDE = [
    f"SELECT a.v FROM {TWO};",
    f"SELECT COUNT(*) AS n FROM {THREE} GROUP BY a.k;",
    "SELECT EXPLODE(GENERATE_SERIES(1, 100000)), v FROM a;",
    "SELECT EXPLODE(xs), payload FROM d;",
    "SELECT EXPLODE(xs), EXPLODE(GENERATE_SERIES(1, 100000)), payload FROM d;",
]


@pytest.mark.parametrize(("rows", "statements"), [(6_000, PAIRS), (1_500, WIDE)], ids=["pairs", "wide"])
def test_rows_that_a_query_multiplies_are_refused_before_they_are_made(rows: int, statements: list[str]) -> None:
    well, answers = run_limited(SERVED, {"rows": rows, "statements": statements})
    assert well == 200
    assert [(status, kind) for status, kind, _ in answers] == [(400, "urn:potok:too-large")] * len(statements), answers


def test_products_that_fit_are_answered() -> None:
    well, answers = run_limited(SERVED, {"rows": 300, "statements": [f"SELECT a.k, w FROM {TWO};", PAIRS[0]]})
    assert (well, [status for status, _, _ in answers]) == (200, [200, 200])
