"""Records of which Kafka refuses the first request and takes the next one, as when a leader was just elected."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from log.records import batch_of, values
from potok.errors import PotokError
from potok.log.broker import AppendResult
from potok.log.kafka import append, transactions
from potok.log.kafka.development.server import KafkaServer, free_ports
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.log.kafka.producer_records import Outgoing, outgoing
from potok.log.open import open_broker
from potok.settings import Settings
from tests.faults.proxy import HOST, PRODUCE, Proxy, Requests
from tests.kafka import REASON

TOPIC = "refused-once"
NEXT_REQUEST_S = 2.0


class RefusedOnce(Proxy):
    """Names another topic in the first request that brings records, so that the broker refuses it."""

    def __init__(self, target: int) -> None:
        super().__init__(target)
        self.has_first = threading.Event()
        self.has_first.set()

    def refuse(self) -> None:
        self.has_first.clear()

    def _pump(self, source: socket.socket, sink: socket.socket, requests: Requests | None) -> None:
        if requests is None:
            return super()._pump(source, sink, None)
        try:
            with source.makefile("rb") as stream:
                while len(size := stream.read(4)) == 4:
                    sink.sendall(size + self._changed(stream.read(int.from_bytes(size)), source))
        except OSError:
            pass
        finally:
            sink.close()

    def _changed(self, request: bytes, source: socket.socket) -> bytes:
        if self.has_first.is_set() or int.from_bytes(request[:2]) != PRODUCE or TOPIC.encode() not in request:
            return request
        self.has_first.set()
        # If the client sends another request without waiting for an answer, the broker gets both together.
        select.select([source], [], [], NEXT_REQUEST_S)
        return request.replace(TOPIC.encode(), TOPIC.upper().encode())


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RefusedOnce]:
    (port,) = free_ports(1)
    found = RefusedOnce(port)
    server = KafkaServer(tmp_path_factory.mktemp("kafka"), Settings.load().cache_path)
    try:
        server.start(port, advertised_port=found.port, timeout_s=120)
    except PotokError as error:
        if os.environ.get("CI"):
            pytest.fail(f"{REASON}: {error}", pytrace=False)
        pytest.skip(f"{REASON}: {error}")
    yield found
    server.stop()
    found.close()


@pytest.fixture
def log(proxy: RefusedOnce, tmp_path: Path) -> Iterator[KafkaBroker]:
    opened = open_broker(f"kafka://{HOST}:{proxy.port}?home={tmp_path}")
    assert isinstance(opened, KafkaBroker)
    opened.create_topic(TOPIC, 2)
    yield opened
    opened.delete_topic(TOPIC)
    opened.close()


def held_back(rows: pa.RecordBatch, proxy: RefusedOnce) -> Iterator[Outgoing]:
    """The second record when the first is on its way."""
    for number, record in enumerate(outgoing(rows)):
        if number == 1:
            assert proxy.has_first.wait(30)
        yield record


@pytest.mark.kafka
@pytest.mark.parametrize("how", ["append", "transaction"])
def test_all_records_are_written_in_order(
    how: str, log: KafkaBroker, proxy: RefusedOnce, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The client must know the topic, and the broker must know nothing of this client in the partition.
    log.append(TOPIC, batch_of([b""]), 1)
    log.publish([log.stage(None, TOPIC, 1, batch_of([b""]))], {})
    for module in (append, transactions):
        monkeypatch.setattr(module, "outgoing", lambda rows: held_back(rows, proxy))
    proxy.refuse()
    if how == "append":
        assert log.append(TOPIC, batch_of([b"1", b"2", b"3"]), 0) == [AppendResult(0, 0, 3)]
    else:
        log.publish([log.stage(None, TOPIC, 0, batch_of([b"1", b"2", b"3"]))], {})
    assert values(log, TOPIC) == [b"1", b"2", b"3"]
