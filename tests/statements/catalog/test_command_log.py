"""Commands in one order, whoever appends them."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.statements.catalog.command_log import Command, CommandLog
from potok.statements.errors import CatalogChanged


def test_a_follower_of_the_command_log_reads_only_new_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    log = CommandLog(broker)
    for number in range(5):
        log.append(Command(number, f"statement {number};", "", {"a": "b"}))
    assert [command.text for command in log.all()] == [f"statement {number};" for number in range(5)]

    def all_of_them(_: str) -> None:
        raise AssertionError("all commands were read")

    monkeypatch.setattr(broker, "list_metadata", all_of_them)
    assert log.since(3) == [Command(number, f"statement {number};", "", {"a": "b"}) for number in (3, 4)]
    assert log.since(5) == []


def test_a_command_number_is_taken_once_together_with_its_metadata(tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    one, other = CommandLog(broker), CommandLog(broker)
    one.append(Command(0, "mine;"), {"along": b"mine"})
    with pytest.raises(CatalogChanged):
        other.append(Command(0, "theirs;"), {"along": b"theirs"})
    assert ([command.text for command in other.all()], broker.get_metadata("along")) == (["mine;"], b"mine")
