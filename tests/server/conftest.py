from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from potok.server.server import Server
from statements.playing import Play

SHOP = """
CREATE STREAM orders (id VARCHAR KEY, user_id VARCHAR, amount DOUBLE)
  WITH (KAFKA_TOPIC = 'orders', PARTITIONS = 2);
CREATE TABLE totals AS SELECT user_id, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY user_id;
CREATE TABLE hourly AS SELECT user_id, COUNT(*) AS n FROM orders
  WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY user_id;
"""

HOUR_MS = 3_600_000


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    found = Play(tmp_path)
    yield found
    found.close()


@pytest.fixture
def shop(play: Play) -> Play:
    play.do(SHOP)
    return play


@pytest.fixture
def server(shop: Play) -> Iterator[Server]:
    with Server(shop.database, port=0) as found:
        yield found


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as found:
        yield found


def sell(play: Play, *orders: tuple[str, str, float], at_ms: int = 0) -> None:
    """Orders as (id, user, amount), taken in by the queries."""
    for order in orders:
        play.do(f"INSERT INTO orders (ROWTIME, id, user_id, amount) VALUES ({at_ms}, '%s', '%s', %s);" % order)
    play.run()
