from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from patterns.aggregates.orders import program
from potok.testing import TestDriver


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A log whose commands another process decides as they arrive."""
    directory = tmp_path_factory.mktemp("shop") / "data"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kill.command_server_program", str(directory)],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield f"file:{directory}"
    process.kill()
    process.wait()
    process.stdout.close()


CREATE = ("orders", "o1", "CreateOrder", '{"order_id": "o1", "amount": 9.5}')


def test_a_command_is_sent_and_its_events_are_printed(potok, shop: str) -> None:
    sent = potok("--broker", shop, "command", "send", *CREATE)
    assert (sent.code, sent.err) == (0, "version 1\n")
    assert sent.out.startswith('1 order.created {"order_id": "o1", "amount": 9.5')


def test_a_key_runs_a_command_once(potok, shop: str) -> None:
    note = ("orders", "o2", "Note", '{"order_id": "o1", "note": "n"}')
    first, again = (potok("--broker", shop, "command", "send", *note, "--key", "k", "--json") for _ in range(2))
    assert [found.objects[0]["repeated"] for found in (first, again)] == [False, True]
    assert first.objects[0]["version"] == again.objects[0]["version"] == 1
    assert again.objects[0]["position"].startswith("orders-commands:0:")


def test_a_command_that_is_not_accepted_is_an_error_with_its_reason(potok, shop: str) -> None:
    pay = ("orders", "o3", "PayOrder", '{"order_id": "o3"}')
    refused = potok("--broker", shop, "command", "send", *pay)
    assert (refused.code, "rejected): only a created order can be paid" in refused.err) == (1, True)
    potok("--broker", shop, "command", "send", "orders", "o3", *CREATE[2:])
    assert "wrong version" in potok("--broker", shop, "command", "send", *pay, "--expect", "5").err
    assert potok("--broker", shop, "command", "send", *pay, "--expect", "1").code == 0


def test_a_command_that_cannot_be_sent_says_why(potok, shop: str) -> None:
    def error(*words: str) -> str:
        result = potok("--broker", shop, "command", "send", *words)
        assert result.code != 0
        return result.err

    assert "is not JSON" in error("orders", "o1", "PayOrder", "{")
    assert "is not a JSON object" in error("orders", "o1", "PayOrder", "[]")
    assert "there are: orders" in error("order", "o1", "PayOrder")
    assert "it has: CreateOrder, Note, PayOrder" in error("orders", "o1", "Pay")
    assert "--expect" in error("orders", "o1", "PayOrder", "--expect", "latest")


def test_the_commands_of_aggregates_are_listed(potok, shop: str) -> None:
    listed = potok("--broker", shop, "command", "list", "--json").objects
    assert listed[0] == {"aggregate": "orders", "command": "CreateOrder", "doc": "Create an order."}
    assert [row["command"] for row in listed] == ["CreateOrder", "Note", "PayOrder"]
    assert "Create an order." in potok("--broker", shop, "command", "list").out


def test_a_command_without_an_aggregate_is_sent_all_the_same(potok, tmp_path: Path) -> None:
    with TestDriver(program(), directory=tmp_path / "data"):
        sent = potok("--broker", f"file:{tmp_path / 'data'}", "command", "send", *CREATE, "--wait", "0 seconds")
    assert (sent.code, "not decided yet" in sent.err) == (0, True)
