"""Records that the log of a sink refuses are dead letters, and the query goes on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import potok
from log.records import values
from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.dead_letters.dead_letters import DeadLetters
from potok.dead_letters.read import read_dead_letters
from potok.log.broker import Broker
from potok.log.open import open_broker

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus

NOW = 1_750_000_000_000


def padding(name: str) -> StreamsBuilder:
    """Makes its records larger, and keeps a copy that is compacted."""
    builder = StreamsBuilder(name)
    orders = builder.stream(f"{name}-orders", timestamp="at")
    orders.map_values(lambda v: "x" * v["size"], name="pad").to(f"{name}-padded")
    orders.to(f"{name}-kept", cleanup_policy="compact")
    return builder


def refused(broker: Broker, name: str) -> set[tuple[str, int, str]]:
    letters = read_dead_letters(broker, f"{name}-dead-letters")
    assert {letter.reason for letter in letters} == {"refused"}
    return {(letter.step.rpartition("-")[2], letter.offset, letter.error) for letter in letters}


@pytest.mark.parametrize("spread", [False, True])
def test_a_record_too_large_for_the_log_is_set_aside_alone(spread: bool) -> None:
    with InProcess(padding("pad"), spread=spread) as driver:
        driver.broker.max_record_bytes = 3_000
        for size in (5, 4_000, 6):
            driver.send("pad-orders", {"size": size, "at": NOW}, key="k")
        driver.run()
        assert [len(record.value) for record in driver.read("pad-padded")] == [5, 6]
        assert len(driver.read("pad-kept")) == 3
        assert refused(driver.broker, "pad") == {("padded", 1, "a record of 4,003 bytes is over the limit of 3,000")}


def test_an_oversized_dead_letter_is_truncated_and_replayed_in_full() -> None:
    builder = StreamsBuilder("q")
    builder.stream("in", value="n long").to("out")
    with InProcess(builder) as driver:
        driver.broker.max_record_bytes = 3_000
        large = b"not a number " * 220
        for value in (large, b"short"):
            driver.send("in", value, key="k", headers={"trace": b"t"}, timestamp=7)
        driver.run()
        cut, whole = driver.dead_letters()
        assert (cut.altered, whole.altered) == ("cut", "")
        assert cut.value == large[: len(large) // 2] and cut.key == b"k"
        assert (cut.reason, cut.offset, cut.headers) == ("decode", 0, (("trace", b"t"),))
        assert DeadLetters(driver.broker, "q").replay().records == 2
        again = driver.read("in")[2]
        assert (again.raw_value, again.timestamp_ms) == (large, 7)


@pytest.fixture
def kafka_log(kafka: ServerStatus, tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(f"{kafka.url}?home={tmp_path / 'home'}")
    yield opened
    opened.close()


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("spark")
def test_the_query_continues_if_kafka_refuses_more_partitions(kafka_log: Broker) -> None:
    name = f"refused-{uuid.uuid4().hex[:8]}"
    kafka_log.create_topic(f"{name}-orders")
    orders = [(10, NOW, "a"), (2_000_000, NOW, "b"), (20, -5, "c"), (30, NOW, None)]
    with potok.Producer(kafka_log) as producer:
        for size, at, key in orders:
            producer.send(f"{name}-orders", {"size": size, "at": at}, key=key, timestamp=NOW)
    potok.run(padding(name), broker=kafka_log.url, until_end=True)

    assert sorted(len(value or b"") for value in values(kafka_log, f"{name}-padded")) == [12, 32]
    assert len(values(kafka_log, f"{name}-kept")) == 2
    early = "has the time -5 ms, and Kafka stores no time before 1970"
    assert refused(kafka_log, name) == {
        ("padded", 1, "a record of 2,000,039 bytes is over the limit of 1,000,000"),
        ("padded", 2, f'a record for "{name}-padded" {early}'),
        ("kept", 2, f'a record for "{name}-kept" {early}'),
        ("kept", 3, f'topic "{name}-kept" is compacted and rejects records without a key'),
    }
    letters = read_dead_letters(kafka_log, f"{name}-dead-letters")
    assert {letter.timestamp_ms for letter in letters if letter.offset == 2} == {-5}, "though Kafka does not keep it"
    done = DeadLetters(kafka_log, name).replay()
    assert (done.dead_letters, done.records) == (4, 3)
