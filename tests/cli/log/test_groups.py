from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from potok.cli.log.groups import NotInTheLog
from potok.log.clients.consumer import Consumer
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import GroupHasMembers, TopicNotFound
from potok.log.queues.queue import Queue
from potok.records.log_record import LogRecord


@pytest.fixture
def log(tmp_path: Path) -> Iterator:
    # One of its own: a command closes the one that all share.
    broker = EmbeddedBroker(tmp_path / "data")
    broker.create_topic("orders", 2)
    for partition in range(2):
        broker.append("orders", [LogRecord(None, b"%d" % n, 1_700_000_000_000 + n) for n in range(5)], partition)
    yield broker
    broker.close()


def consume(log, count: int, group: str = "billing") -> None:
    with Consumer(log, "orders", group=group, start="earliest") as consumer:
        consumer.poll(max_records=count)
        consumer.commit()


def test_without_groups_the_command_says_how_to_create_one(potok, log) -> None:
    result = potok("groups", "list")
    assert (result.code, result.out) == (0, "")
    assert "potok consume orders --group billing" in result.err
    assert potok("groups", "list", "--json").out == ""


def test_groups_are_listed_with_members_and_lag(potok, log) -> None:
    consume(log, 3)
    with Consumer(log, "orders", group="shipping", start="earliest") as consumer:
        consumer.poll()
        found = potok("groups", "list", "--json").objects
    assert found == [
        {"group": "billing", "kind": "consumers", "topics": ["orders"], "members": 0, "lag": 7},
        {"group": "shipping", "kind": "consumers", "topics": ["orders"], "members": 1, "lag": 10},
    ]
    assert "billing" in potok("groups", "list").out


def test_a_queue_is_listed_with_what_is_not_done(potok, log) -> None:
    with Queue(log, "orders", "senders") as queue:
        taken = queue.receive(3)
        taken[0].ack()
        taken[1].nack("1 h")
        queue.flush()
        (listed,) = potok("groups", "list", "--json").objects
        (rendered,) = potok("groups", "show", "senders", "--json").objects
    assert listed == {"group": "senders", "kind": "queue", "topics": ["orders"], "members": None, "lag": 9}
    counts = [[row["ready"], row["out"], row["waiting"]] for row in rendered["queues"]["orders"]]
    assert sorted(counts) == [[2, 1, 1], [5, 0, 0]]
    assert 'queue over "orders"' in potok("groups", "show", "senders").out


def test_a_group_is_shown_partition_by_partition(potok, log) -> None:
    with Consumer(log, "orders", group="billing", start="earliest") as consumer:
        consumer.poll(max_records=5)
        consumer.commit()
        (rendered,) = potok("groups", "show", "billing", "--json").objects
        text = potok("groups", "show", "billing")
    assert sorted(row["lag"] for row in rendered["partitions"]) == [0, 5]
    assert [member["partitions"] for member in rendered["members"]] == [["orders:0", "orders:1"]]
    assert all(row["member"] == rendered["members"][0]["client"] for row in rendered["partitions"])
    assert "1 live member, 5 records waiting" in text.err
    assert "committed" in text.out


def test_an_unknown_group_is_an_error(potok, log) -> None:
    result = potok("groups", "show", "nobody")
    assert result.code == 1
    assert 'there is no group "nobody"' in result.err


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("earliest", {0: 0, 1: 0}),
        ("latest", {0: 5, 1: 5}),
        ("2", {0: 2, 1: 2}),
        ("1700000000003", {0: 3, 1: 3}),
        ("2026-05-01", {0: 5, 1: 5}),
    ],
)
def test_the_offsets_of_a_group_are_reset(potok, log, to: str, expected: dict[int, int]) -> None:
    consume(log, 3)
    before = log.committed("billing", "orders")
    tried = potok("groups", "reset", "billing", "--to", to, "--dry-run")
    assert (tried.code, log.committed("billing", "orders")) == (0, before)
    assert "nothing was changed" in tried.err
    moves = potok("groups", "reset", "billing", "--to", to, "--json").objects
    assert {move["partition"]: move["after"] for move in moves} == expected == log.committed("billing", "orders")
    assert {move["partition"]: move["before"] for move in moves} == before


def test_one_partition_alone_can_be_set(potok, log) -> None:
    consume(log, 10)
    assert potok("groups", "reset", "billing", "--to", "1", "--partition", "1").code == 0
    assert log.committed("billing", "orders") == {0: 5, 1: 1}


def test_a_group_may_be_set_before_it_starts(potok, log) -> None:
    assert "--topic orders" in potok("groups", "reset", "coming", "--to", "earliest").err
    assert potok("groups", "reset", "coming", "--to", "earliest", "--topic", "orders").code == 0
    assert log.committed("coming", "orders") == {0: 0, 1: 0}


def test_offsets_of_an_active_group_cannot_be_reset(potok, log) -> None:
    with Consumer(log, "orders", group="billing"):
        result = potok("groups", "reset", "billing", "--to", "earliest", "--topic", "orders")
    assert result.code == 1
    assert GroupHasMembers("billing", 1).message in result.err
    assert log.committed("billing", "orders") == {}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--to", "99"), NotInTheLog("orders", 0, 99, 0, 5)),
        (("--to", "latest", "--partition", "7"), TopicNotFound("orders", 7, 2)),
        (("--to", "latest", "--topic", "ordres"), TopicNotFound("ordres")),
    ],
)
def test_a_position_that_does_not_exist_is_an_error(potok, log, words: tuple[str, ...], error: Exception) -> None:
    consume(log, 3)
    before = log.committed("billing", "orders")
    result = potok("groups", "reset", "billing", *words)
    assert result.code == 1
    assert error.message in result.err  # type: ignore[attr-defined]
    assert log.committed("billing", "orders") == before


def test_a_queue_can_be_reset_once_no_delivery_is_pending(potok, log) -> None:
    with Queue(log, "orders", "senders") as queue:
        for delivery in queue.receive(5):
            delivery.ack()
        held = queue.receive(2)
        refused = potok("groups", "reset", "senders", "--to", "earliest")
        assert refused.code == 1
        # What the queue has taken ahead for its next call is out, too.
        assert re.search(r'queue "senders" has \d+ records? in processing', refused.err)
        for delivery in held:
            delivery.ack()
    assert potok("groups", "reset", "senders", "--to", "earliest").code == 0
    with Queue(log, "orders", "senders") as queue:
        assert queue.counts().ready == 10


def test_consuming_as_a_member_resumes_at_the_offsets_of_the_group(potok, log) -> None:
    first = potok("consume", "orders", "--group", "g", "--from-beginning", "--json", "--max", "4")
    second = potok("consume", "orders", "--group", "g", "--json")
    assert (len(first.objects), len(second.objects)) == (4, 6)
    places = [(record["partition"], record["offset"]) for record in first.objects + second.objects]
    assert sorted(places) == [(partition, offset) for partition in range(2) for offset in range(5)]
    assert potok("consume", "orders", "--group", "g").out == ""
    assert log.committed("g", "orders") == {0: 5, 1: 5}
    assert log.describe_group("g").members == ()


def test_a_group_that_is_new_starts_with_the_next_record(potok, log) -> None:
    assert potok("consume", "orders", "--group", "g").out == ""
    log.append("orders", [LogRecord(None, b"new")], 0)
    assert potok("consume", "orders", "--group", "g").out.endswith("\tnew\n")


def test_a_member_cannot_choose_its_partition(potok, log) -> None:
    result = potok("consume", "orders", "--group", "g", "--partition", "0")
    assert result.code == 2
    assert "a group assigns partitions" in result.err


PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from potok.cli.main import main
main()
"""


def test_a_member_that_is_interrupted_has_committed_what_it_showed(log, tmp_path: Path) -> None:
    words = ["consume", "orders", "--group", "g", "--from-beginning", "--follow", "--json"]
    command = [sys.executable, "-c", PROGRAM, *words]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        rendered = [json.loads(process.stdout.readline()) for _ in range(10)]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, ""), err
    assert len({(record["partition"], record["offset"]) for record in rendered}) == 10
    # It may be interrupted between showing the last one and noting that.
    assert sum(log.committed("g", "orders").values()) in (9, 10)
    assert log.describe_group("g").members == ()
