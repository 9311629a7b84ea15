"""Batches on Spark: what they ask of the JVM."""

from __future__ import annotations

import pytest
from py4j.java_gateway import GatewayClient
from py4j.protocol import REFLECTION_COMMAND_NAME

from potok import StreamsBuilder
from potok.testing import TestDriver


@pytest.mark.usefixtures("spark")
def test_a_batch_looks_up_no_class_of_the_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    send_command = GatewayClient.send_command

    def watched(client: GatewayClient, command: str, *arguments: object, **options: object) -> str:
        sent.append(command)
        return str(send_command(client, command, *arguments, **options))

    builder = StreamsBuilder("lookups")
    builder.stream("words", value="word string").group_by("word").count(name="counts")
    with TestDriver(builder, spark=True) as driver:
        driver.send("words", {"word": "a"})
        driver.run()
        monkeypatch.setattr(GatewayClient, "send_command", watched)
        driver.send("words", {"word": "a"})
        driver.run()
        monkeypatch.undo()
        assert driver.table("counts").get("a") == 2
    assert sent
    assert [command for command in sent if command.startswith(REFLECTION_COMMAND_NAME)] == []
