"""`potok command send`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from patterns.aggregates.orders import program
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.testing import TestDriver

CREATE = ("orders", "o1", "CreateOrder", '{"order_id": "o1", "amount": 5}')


@pytest.fixture
def answered(potok: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run `potok command send`; whenever it waits, the program decides what was sent."""

    def decide(_: float) -> None:
        driver = TestDriver(program(), directory=tmp_path / "data")
        driver.run()
        driver.leave()

    def run(*words: str) -> Any:
        decide(0)
        monkeypatch.setattr("potok.cli.log.command.time.sleep", decide)
        return potok("command", "send", *words)

    return run


def test_an_accepted_command_shows_its_events(answered: Any) -> None:
    outcome = answered(*CREATE, "--command-id", "c1", "--json")
    (result,) = outcome.objects
    assert (outcome.code, result["status"], result["version"], result["command_id"]) == (0, "accepted", 1, "c1")
    assert result["events"][0]["data"] == {"order_id": "o1", "amount": 5.0, "items": []}


def test_a_rejected_command_exits_with_1_and_its_reason(answered: Any) -> None:
    outcome = answered("orders", "o1", "PayOrder", '{"order_id": "o1"}')
    assert outcome.code == 1
    assert "PayOrder was rejected: only a created order can be paid; version 0" in " ".join(outcome.err.split())


def test_a_command_can_be_sent_without_waiting(potok: Any, tmp_path: Path) -> None:
    with TestDriver(program(), directory=tmp_path / "data"):
        pass
    outcome = potok("command", "send", *CREATE, "--command-id", "c1", "--expect", "none", "--wait", "0", "--json")
    assert outcome.objects == [{"command_id": "c1"}]
    with closing(EmbeddedBroker(tmp_path / "data")) as broker:
        (batch,) = broker.read("orders-commands", 0, 0, 1)
        headers = {one["name"]: one["value"] for one in batch.column("headers").to_pylist()[0]}
    assert headers == {"command-id": b"c1", "expected-version": b"none"}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("orders", "o1", "PayOrder", "no json"), "the fields of a command are a JSON object"),
        (("orders", "o1", "PayOrder", "[1]"), "the fields of a command are a JSON object"),
        (("orders", "o1", "PayOrder", "--expect", "-2"), '"-2" is not an expected version'),
        (("invoices", "o1", "PayOrder"), 'there is no aggregate "invoices"'),
    ],
)
def test_a_command_that_cannot_be_sent_says_why(potok: Any, tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    with TestDriver(program(), directory=tmp_path / "data"):
        pass
    outcome = potok("command", "send", *words)
    assert outcome.code == 1
    assert text in " ".join(outcome.err.split())
