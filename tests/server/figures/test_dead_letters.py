from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from potok.dead_letters.dead_letters import DeadLetters
from potok.dead_letters.selection import Selection
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.server.figures.dead_letters import PER_REASON, SHOWN_CHARS, RecentDeadLetters, shown

TOPIC = "shop-dead-letters"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(tmp_path)
    yield opened
    opened.close()


def letter(reason: str, offset: int, value: bytes | None = b"{}", error: str = "bad") -> LogRecord:
    headers = {
        "potok.topic": "orders", "potok.partition": "3", "potok.offset": str(offset),
        "potok.step": "high", "potok.reason": reason, "potok.error": error,
    }  # fmt: skip
    return LogRecord(b"k", value, 1_000, tuple((name, text.encode()) for name, text in headers.items()))


def test_a_query_without_dead_letters_has_none(broker: Broker) -> None:
    assert RecentDeadLetters(broker, "shop").latest() == []


def test_a_dead_letter_has_record_position_and_reason(broker: Broker) -> None:
    broker.create_topic(TOPIC)
    broker.append(TOPIC, [letter("decode", 42, b'{"amount": "a lot"}', "expected double")])

    (found,) = RecentDeadLetters(broker, "shop").latest()

    assert found["at"] > 0
    del found["at"]
    assert found == {
        "reason": "decode", "step": "high", "error": "expected double", "key": "k", "value": '{"amount": "a lot"}',
        "topic": "orders", "partition": 3, "offset": 42, "replays": 0,
    }  # fmt: skip


def test_new_dead_letters_are_found_once_by_the_next_poll(broker: Broker) -> None:
    broker.create_topic(TOPIC, 2)
    letters = RecentDeadLetters(broker, "shop")
    broker.append(TOPIC, [letter("late", 1)], 0)
    assert [found["offset"] for found in letters.latest()] == [1]

    broker.append(TOPIC, [letter("late", 2)], 1)

    assert sorted(found["offset"] for found in letters.latest()) == [1, 2]
    assert len(letters.latest()) == 2


def test_a_flood_of_one_reason_does_not_hide_another(broker: Broker) -> None:
    broker.create_topic(TOPIC)
    letters = RecentDeadLetters(broker, "shop")
    broker.append(TOPIC, [letter("error", 0)])
    letters.latest()

    broker.append(TOPIC, [letter("late", n) for n in range(1, 1_000)])
    found = letters.latest()

    assert sum(each["reason"] == "error" for each in found) == 1
    assert [each["offset"] for each in found if each["reason"] == "late"] == list(range(999, 999 - PER_REASON, -1))


def test_a_value_is_cut_and_bytes_that_are_not_text_are_escaped() -> None:
    assert shown(b"x" * 1_000) == "x" * (SHOWN_CHARS - 1) + "…"
    assert len(shown(b"\xff" * 5_000)) == SHOWN_CHARS
    assert shown(b"caf\xff") == "caf\\xff"
    assert shown("é".encode() * SHOWN_CHARS) == "é" * SHOWN_CHARS
    assert shown(None) == ""


def test_resolved_dead_letters_are_neither_shown_nor_counted(broker: Broker) -> None:
    letters = RecentDeadLetters(broker, "shop")
    assert (letters.latest(), letters.open()) == ([], 0)
    broker.create_topic("orders", 4)
    broker.create_topic(TOPIC)
    broker.append(TOPIC, [letter("late", 1), letter("late", 2), letter("decode", 3)])
    assert (len(letters.latest()), letters.open()) == (3, 3)

    DeadLetters(broker, "shop").replay(Selection(reason="late"))

    assert ([found["offset"] for found in letters.latest()], letters.open()) == ([3], 1)
    DeadLetters(broker, "shop").purge()
    assert (letters.latest(), letters.open()) == ([], 0)
