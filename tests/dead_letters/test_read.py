"""Read dead letters."""

from __future__ import annotations

from pathlib import Path

from potok.dead_letters.dead_letters import DeadLetters
from potok.dead_letters.read import BLOCK, DeadLetter, read_dead_letters
from potok.dead_letters.selection import Selection
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from snapshots.dead_letters import TOPIC, dead_letter


def append(directory: Path, count: int, partition: int, reason: str = "late") -> Broker:
    broker = open_broker(directory)
    broker.create_topic(TOPIC, 2, exist_ok=True)
    broker.append(TOPIC, [dead_letter(n, reason=reason) for n in range(count)], partition)
    return broker


def test_the_latest_are_read_from_the_end_until_the_limit(tmp_path: Path) -> None:
    append(tmp_path, 3, 0, "decode")
    broker = append(tmp_path, 2 * BLOCK + 5, 0)
    box = DeadLetters(broker, "shop")
    assert [found.position for found in box.latest(2)] == [(0, 2 * BLOCK + 6), (0, 2 * BLOCK + 7)]
    assert [found.position for found in box.latest(2, Selection(reason="decode"))] == [(0, 1), (0, 2)]
    assert box.count() == len(read_dead_letters(broker, TOPIC)) == 2 * BLOCK + 8
    broker.close()


def test_a_position_without_a_partition_selects_every_partition(tmp_path: Path) -> None:
    append(tmp_path, 2, 0)
    broker = append(tmp_path, 1, 1)
    box = DeadLetters(broker, "shop")

    def places(partition: int | None, offset: int) -> list[tuple[int, int]]:
        return [found.position for found in box.read(Selection(positions=frozenset({(partition, offset)})))]

    assert places(None, 0) == [(0, 0), (1, 0)]
    assert places(1, 0) == [(1, 0)]
    assert places(None, 1) == [(0, 1)]
    assert places(None, 5) == places(7, 0) == []
    broker.close()


def test_headers_of_the_record_are_separated_from_those_of_the_dead_letter(tmp_path: Path) -> None:
    inner = dead_letter(3, step="inner", record=LogRecord(b"k", b"v", headers=(("a", b"1"), ("potok.replayed", b"4"))))
    outer = dead_letter(9, step="outer", topic=TOPIC, record=inner, time="-3", at="77", bytes="cut")
    broker = open_broker(tmp_path)
    broker.create_topic(TOPIC)
    broker.append(TOPIC, [outer])
    (found,) = read_dead_letters(broker, TOPIC)
    assert (found.step, found.topic, found.offset, found.altered) == ("outer", TOPIC, 9, "cut")
    assert (found.timestamp_ms, found.set_aside_at_ms, found.replays) == (-3, 77, 4)
    assert found.headers == inner.headers, "a dead letter of a dead letter"
    broker.close()


def test_a_record_that_is_not_a_dead_letter_is_read_with_defaults(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    broker.create_topic(TOPIC)
    strange = (("potok.topic", b"t"), ("potok.offset", b"many"), ("potok.at", b""), ("potok.step", b"\xff"))
    huge = (("potok.topic", TOPIC.encode()), ("potok.partition", b"0"), ("potok.offset", b"9" * 30))
    records = [LogRecord(None, b"hello", 5), LogRecord(None, b"x", 6, strange), LogRecord(None, b"y", 7, huge)]
    broker.append(TOPIC, records)
    plain, odd, far = read_dead_letters(broker, TOPIC)
    assert far.offset == -1
    assert DeadLetters(broker, "shop").replay(dry_run=True).dead_letters == 1
    assert isinstance(plain, DeadLetter)
    assert (plain.topic, plain.partition, plain.offset, plain.reason, plain.value) == ("", -1, -1, "", b"hello")
    assert (odd.topic, odd.offset, odd.step) == ("t", -1, "\ufffd")
    assert odd.set_aside_at_ms > 0
    broker.close()
