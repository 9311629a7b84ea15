"""Kill a process while it decides commands, at every durable step: each command counts once."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.open import open_broker
from potok.snapshots.ledger_view import read_entry
from tests.kill import aggregates_program
from tests.kill.test_kafka_kill import WITHOUT_SPARK
from tests.kill.test_kill import DURABLE, run

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus

pytestmark = [pytest.mark.kill, pytest.mark.timeout(600)]

COMMANDS = 10_000


def test_versions_are_contiguous_and_each_command_counts_once_after_kills_at_every_durable_step(tmp_path: Path) -> None:
    check_after_kills(EmbeddedBroker.shared(tmp_path / "kill"), DURABLE, COMMANDS)


def test_on_kafka_each_command_counts_once_after_kills_around_its_transactions(
    kafka: ServerStatus, tmp_path: Path
) -> None:
    check_after_kills(open_broker(f"{kafka.url}?home={tmp_path}"), WITHOUT_SPARK, COMMANDS // 4)


def check_after_kills(broker: Broker, failpoints: list[str], count: int) -> None:
    broker.create_topic("accounts-commands", 2)
    broker.create_topic("account-events", 2)
    commands = aggregates_program.records(count)
    broker.append("accounts-commands", commands)
    for failpoint in failpoints:
        assert run(broker.url, failpoint, program="aggregates_program") == -signal.SIGKILL, failpoint
    read = commands_read(broker)
    assert 0 < read < count, "the kills proved nothing"
    # Each batch is followed by one that reads its events: run until no command is left.
    while read < count:
        assert run(broker.url, program="aggregates_program") == 0
        read = commands_read(broker)
    aggregates_program.check(broker, commands)


def commands_read(broker: Broker) -> int:
    entry = read_entry(broker, "accounts-query")
    assert entry is not None
    return sum(entry.offsets.topics["accounts-commands"].values())
