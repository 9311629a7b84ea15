"""A log with something in every view, and one with nothing, each behind a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from operators.core.in_process import InProcess
from patterns.sagas.shop import fill
from potok.dsl.builder import StreamsBuilder
from potok.log.broker import Broker
from potok.log.clients.consumer import Consumer
from potok.records.log_record import LogRecord
from potok.server.server import Server
from potok.snapshots.source_status import CAPTURE, GATEWAY, encode_status, status_key
from statements.playing import Play

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
TOPICS = 1_000
ROWS = 10_000

SHOP = """
CREATE STREAM orders (id VARCHAR KEY, user_id VARCHAR, amount DOUBLE)
  WITH (KAFKA_TOPIC = 'shop-orders', PARTITIONS = 2);
CREATE TABLE totals AS SELECT user_id, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY user_id;
"""
TOTALS = "CTAS_TOTALS_1"


@dataclass
class ServedLog:
    """A server, and what its queries are run with."""

    url: str
    play: Play

    @property
    def broker(self) -> Broker:
        return self.play.broker


def prices() -> StreamsBuilder:
    builder = StreamsBuilder("prices")
    builder.table("prices", value="price double, label string", name="prices", history="1000 days")
    return builder


@contextmanager
def full_log(directory: Path) -> Iterator[ServedLog]:
    """Hostile keys, values, headers, errors and names; a thousand topics; ten thousand rows; every kind of thing."""
    with ExitStack() as opened:
        opened.enter_context(fill(directory))
        play = Play(directory)
        opened.callback(play.close)
        play.do(SHOP)
        table = opened.enter_context(InProcess(prices(), directory=directory))
        play.do("INSERT INTO orders (ROWTIME, id, user_id, amount) VALUES (1000, 'o1', 'ann', 2.5);")
        headers = ((HOSTILE, HOSTILE.encode()),)
        bad = [LogRecord(HOSTILE.encode(), b'{"USER_ID": ' + HOSTILE.encode(), 5, headers) for _ in range(3)]
        play.broker.append("shop-orders", bad, partition=0)
        play.run()
        for at, label in ((100, "old"), (200, HOSTILE)):
            table.send("prices", {"price": at / 100, "label": label}, HOSTILE, timestamp=at)
        for number in range(ROWS):
            table.send("prices", {"price": 1.0, "label": "x"}, f"key-{number:05d}", timestamp=300)
        table.run()
        for number in range(TOPICS):
            play.broker.create_topic(f"topic-{number:04d}")
        _report_sources(play.broker)
        consumer = opened.enter_context(Consumer(play.broker, "shop-orders", group="billing", start="earliest"))
        consumer.poll(5)
        server = opened.enter_context(Server(play.database, port=0))
        yield ServedLog(server.url, play)


@contextmanager
def empty_log(directory: Path) -> Iterator[ServedLog]:
    play = Play(directory)
    try:
        with Server(play.database, port=0) as server:
            yield ServedLog(server.url, play)
    finally:
        play.close()


def _report_sources(broker: Broker) -> None:
    counts = {"received": 90, "landed": 70, "duplicates": 0, "lost": {HOSTILE: 20}, "refused": {}, "buffered": 0}
    listener = {"kind": "udp", "topic": HOSTILE, "address": "127.0.0.1:1", "counts": counts, "problem": HOSTILE}
    capture = {"state": "streaming", "changes": 7, "lag_bytes": 2_000, "problem": None, "snapshots": {}}
    for kind, name, status in ((GATEWAY, HOSTILE, listener), (CAPTURE, "shop-db", capture)):
        broker.set_metadata({status_key(kind, name): encode_status(1_000, HOSTILE, running=True, status=status)})
