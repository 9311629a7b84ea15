from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus


def test_a_server_is_started_found_and_stopped(potok, kafka: ServerStatus, tmp_path: Path) -> None:
    down = potok("kafka", "status")
    assert down.code == 1
    assert "no Kafka runs in data/kafka; start it: potok kafka up" in down.out
    (started,) = potok("kafka", "up", "--port", "0", "--json").objects
    try:
        assert started["state"] == "up"
        assert started["url"] == f"kafka://127.0.0.1:{started['port']}"
        assert Path(started["log"]).read_text()
        assert started["directory"] == str(tmp_path / "data" / "kafka")
        again = potok("kafka", "up", "--port", "1234")
        assert f"Kafka runs already, on port {started['port']}" in again.err
        assert potok("kafka", "status", "--json").objects == [started]
        assert f"up at {started['url']}" in potok("kafka", "status").out
    finally:
        stopped = potok("kafka", "down", "--json").objects[0]
    assert (stopped["state"], stopped["was_up"], stopped["pid"]) == ("down", True, 0)
    assert "was not running" in potok("kafka", "down").err


def test_a_port_in_use_is_reported_with_a_command_to_type(potok, kafka: ServerStatus) -> None:
    result = potok("kafka", "up", "--port", str(kafka.port))
    assert result.code == 1
    assert result.err.splitlines()[-2:] == [
        f"error: port {kafka.port} of this machine is in use by another program",
        "  hint: pick a free one: potok kafka up --port 0",
    ]


def test_missing_java_is_reported_with_what_to_install(
    potok, kafka: ServerStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("potok.java_runtime._candidates", lambda: iter(()))
    result = potok("kafka", "up", "--port", "0")
    assert result.code == 1
    assert "no Java 17 or newer was found" in result.err
    assert "pip install" in result.err
    assert potok("kafka", "status").code == 1


def test_topics_of_a_cluster_are_made_filled_read_and_described(
    potok, kafka: ServerStatus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POTOK_BROKER", kafka.url)
    assert potok("topics", "create", "cli-orders", "--partitions", "2").code == 0
    (tmp_path / "orders").write_text('{"a": 1}\n{"a": 2}\n')
    assert potok("produce", "cli-orders", "orders").code == 0
    listed = {topic["topic"]: topic for topic in potok("topics", "list", "--json").objects}
    assert listed["cli-orders"]["records"] == 2
    assert listed["cli-orders"]["bytes"] is None
    (described,) = potok("topics", "describe", "cli-orders", "--json").objects
    assert len(described["partition_offsets"]) == 2
    assert potok("topics", "describe", "cli-orders").code == 0
    consumed = potok("consume", "cli-orders", "--from-beginning", "--json").objects
    assert len(consumed) == 2
    assert potok("topics", "delete", "cli-orders", "--yes").code == 0
    assert not (tmp_path / "data").exists()


def test_an_unreachable_cluster_is_reported_with_a_hint(potok, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POTOK_CONNECT_TIMEOUT", "100 ms")
    monkeypatch.setattr("potok.log.kafka.clients._SLICE_S", 0.1)
    result = potok("topics", "list", "--broker", "kafka://127.0.0.1:1")
    assert result.code == 1
    assert "Kafka at 127.0.0.1:1 does not respond" in result.err
    assert "potok kafka up" in result.err
