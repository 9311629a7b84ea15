"""A registry that is away, or that refuses: queries wait or stop, and no record is lost."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from confluent_kafka.schema_registry import Schema

from potok import SchemaError, StreamsBuilder, avro
from potok.records.log_record import LogRecord
from potok.records.schema_registry.errors import RegistryRefused, RegistryUnreachable
from potok.runtime.queries.group_query import QueryState
from potok.testing import TestDriver
from runtime.queries.by_hand import ByHand
from tests.records.formats.registered import confluent

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}


class Gate:
    """Forwards connections to a server while it is open."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._socket = self._listen(0)
        self.port = self._socket.getsockname()[1]
        self.url = url.replace(f":{parts.port}", f":{self.port}")
        self._open: list[socket.socket] = []

    def open(self) -> None:
        self._socket = self._listen(self.port)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        for end in [self._socket, *self._open]:
            end.close()

    def _listen(self, port: int) -> socket.socket:
        listening = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()
        return listening

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                near = listening.accept()[0]
            except OSError:
                return
            far = socket.create_connection(self._server)
            self._open += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_forward, args=(source, target), daemon=True).start()


def _forward(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def test_a_query_waits_for_a_registry_that_is_away(
    registry_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = confluent.avro_writer(registry_url, "away", json.dumps(ORDER))
    gate = Gate(registry_url)
    monkeypatch.setenv("POTOK_SCHEMA_REGISTRY_URL", gate.url)
    builder = StreamsBuilder("away")
    orders = builder.stream("away", value=avro("away-value", "id string"))
    orders.to("away-out", value=avro("away-out-value"))
    gate.close()
    group = ByHand(tmp_path)
    group.add(builder.build())
    assert group.statuses()["away"].state is QueryState.RUNNING
    group.broker.append("away", [LogRecord(None, write({"id": "a"})[0], 1)])
    group.step()
    found = group.statuses()["away"]
    assert found.state is QueryState.WAITING
    assert f"127.0.0.1:{gate.port}" in found.error and "cannot be reached" in found.error


def test_nothing_of_a_batch_is_lost_while_the_registry_is_away(
    registry_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = confluent.avro_writer(registry_url, "gone", json.dumps(ORDER))
    data = write({"id": "a"})[0]
    gate = Gate(registry_url)
    monkeypatch.setenv("POTOK_SCHEMA_REGISTRY_URL", gate.url)
    builder = StreamsBuilder("gone")
    orders = builder.stream("gone", value=avro("gone-value", "id string"))
    orders.map_values(lambda v: {"n": v["id"]}).to("gone-out", value=avro("gone-out-value", full_name="Out"))
    with TestDriver(builder) as driver:
        driver.send("gone", data)
        gate.close()
        with pytest.raises(RegistryUnreachable):
            driver.run()
        assert driver.dead_letters() == [] and driver.read("gone-out") == []
        gate.open()
        driver.run()
        assert driver.dead_letters() == []
        (found,) = driver.read("gone-out")
    assert confluent.avro_reader(registry_url, "gone-out")(found.raw_value or b"") == {"n": "a"}


def test_a_program_whose_result_is_incompatible_does_not_start(registry_url: str) -> None:
    client = confluent.client(registry_url)
    taken = {**ORDER, "fields": [{"name": "id", "type": "int"}]}
    confluent.avro_writer(registry_url, "taken", json.dumps(taken))({"id": 1})
    client.set_compatibility("taken-value", "FULL")
    builder = StreamsBuilder("taken")
    builder.stream("text", value="id string").to("taken", value=avro("taken-value", full_name="Order"))
    with pytest.raises(RegistryRefused, match=r"answers 409: .*ncompatible") as caught:
        TestDriver(builder)
    assert not caught.value.passing and "compatibility level" in caught.value.hint


def test_a_program_that_writes_values_of_no_type_does_not_start_unless_the_registry_has_one(registry_url: str) -> None:
    builder = StreamsBuilder("typeless")
    builder.stream("typeless").to("typeless-out", value=avro())
    with pytest.raises(SchemaError, match="cannot be written without declared columns"):
        TestDriver(builder)
    number = confluent.client(registry_url).register_schema("any", Schema(json.dumps(ORDER), "AVRO"))
    builder = StreamsBuilder("typeless")
    builder.stream("typeless").to("typeless-out", value=avro(id=number))
    with TestDriver(builder) as driver:
        driver.send("typeless", {"id": "a"})
        driver.send("typeless", {"id": 1})
        driver.run()
        (found,), (letter,) = driver.read("typeless-out"), driver.dead_letters()
    assert found.raw_value == b"\0" + number.to_bytes(4, "big") + b"\x02a"
    assert letter.reason == "encode" and f"does not fit schema {number}" in letter.error
