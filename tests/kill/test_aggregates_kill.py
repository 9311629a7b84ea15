"""Kill a process while it decides commands, at every durable step: each command counts once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.snapshots.ledger_view import read_entry
from tests.kill import aggregates_program
from tests.kill.test_kill import DURABLE, run

pytestmark = [pytest.mark.kill, pytest.mark.timeout(600)]

COMMANDS = 10_000


def test_versions_are_contiguous_and_each_command_counts_once_after_kills_at_every_durable_step(tmp_path: Path) -> None:
    directory = tmp_path / "kill"
    broker = EmbeddedBroker.shared(directory)
    broker.create_topic("accounts-commands", 2)
    broker.create_topic("account-events", 2)
    commands = aggregates_program.records(COMMANDS)
    broker.append("accounts-commands", commands)
    url = f"file:{directory}"
    for failpoint in DURABLE:
        assert run(url, failpoint, program="aggregates_program") == -signal.SIGKILL, failpoint
    entry = read_entry(broker, "accounts-query")
    assert entry is not None
    read = sum(entry.offsets.topics["accounts-commands"].values())
    assert 0 < read < COMMANDS, "the kills proved nothing"
    # Each batch is followed by one that reads its events: run until no command is left.
    while read < COMMANDS:
        assert run(url, program="aggregates_program") == 0
        entry = read_entry(broker, "accounts-query")
        assert entry is not None
        read = sum(entry.offsets.topics["accounts-commands"].values())
    aggregates_program.check(broker, commands)
