"""Read, replay and purge dead letters, on the embedded log and on Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from log.records import read_all
from potok.dead_letters.dead_letters import DeadLetters
from potok.dead_letters.read import Fate
from potok.dead_letters.replay import MADE_INSIDE, NO_BYTES, NO_TOPIC, REFUSED
from potok.dead_letters.resolved import DeadLettersChanged
from potok.dead_letters.selection import Selection
from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from snapshots.dead_letters import QUERY, TOPIC, dead_letter, fill, order


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    if request.param == "embedded":
        opened: Broker = EmbeddedBroker(tmp_path / "data")
    else:
        opened = open_broker(f"{request.getfixturevalue('kafka').url}?home={tmp_path / 'data'}")
    yield opened
    if request.param == "kafka":
        for topic in set(opened.topics()) - {"potok-fences"}:
            opened.delete_topic(topic)
    opened.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    opened = EmbeddedBroker(tmp_path / "data")
    yield opened
    opened.close()


def steps(box: DeadLetters, selection: Selection = Selection(), *, replayed: bool = False) -> list[str]:
    return [found.step for found in box.read(selection, replayed=replayed)]


def test_a_query_without_a_dead_letter_topic_has_no_dead_letters(log: Broker) -> None:
    box = DeadLetters(log, QUERY)
    assert (steps(box), box.latest(5), box.count(), box.replay().records, box.purge().dead_letters) == ([], [], 0, 0, 0)


def test_a_replayed_record_is_appended_unchanged_to_its_source_partition_and_resolved(log: Broker) -> None:
    fill(log, dead_letter(4, partition=1), dead_letter(1, partition=1), dead_letter(2), partitions=2)
    box = DeadLetters(log, QUERY)
    assert box.count() == 3
    done = box.replay()
    assert (done.dead_letters, done.records, done.left) == (3, 3, {})
    assert done.appended == {("orders", 0): 1, ("orders", 1): 2}
    replayed = {partition: read_all(log, "orders", partition)[6:] for partition in (0, 1)}
    assert [(r.key, r.value, r.timestamp_ms) for r in replayed[1]] == [
        (b"k1", b"order 1", 5_001),
        (b"k4", b"order 4", 5_004),
    ], "in the order of their positions, not in that of the letters"
    assert replayed[1][0].headers == (("trace", b"1"), ("potok.replayed", b"1"))
    assert [r.value for r in replayed[0]] == [b"order 2"]
    assert (steps(box), box.count(), box.replay().records) == ([], 0, 0)
    assert box.fates(list(box.read(replayed=True))) == [Fate.REPLAYED] * 3
    assert steps(DeadLetters(log, QUERY)) == [], "whoever looks"


def test_a_record_that_fails_again_is_counted(log: Broker) -> None:
    fill(log, dead_letter(2))
    box = DeadLetters(log, QUERY)
    box.replay()
    again = read_all(log, "orders")[-1]
    log.append(TOPIC, [dead_letter(again.offset, record=again)])
    assert [found.replays for found in box.read()] == [1]
    box.replay()
    assert read_all(log, "orders")[-1].headers == (("trace", b"2"), ("potok.replayed", b"2"))


def test_only_selected_dead_letters_are_replayed(log: Broker) -> None:
    fill(log, dead_letter(0, step="a"), dead_letter(1, step="b", reason="late"), dead_letter(2, step="b"))
    box = DeadLetters(log, QUERY)
    assert box.replay(Selection(step="b", reason="error")).records == 1
    assert [r.value for r in read_all(log, "orders")[6:]] == [b"order 2"]
    assert steps(box) == ["a", "b"]


def test_a_dry_run_counts_and_changes_nothing(log: Broker) -> None:
    fill(log, dead_letter(0), dead_letter(0, topic=""), dead_letter(1))
    box = DeadLetters(log, QUERY)
    planned = box.replay(dry_run=True)
    assert (planned.records, planned.left) == (2, {MADE_INSIDE: 1})
    assert box.purge(dry_run=True).dead_letters == 3
    assert (box.count(), len(read_all(log, "orders"))) == (3, 6)


def test_a_record_that_several_steps_set_aside_is_appended_once(log: Broker) -> None:
    fill(log, dead_letter(3, step="a"), dead_letter(4, step="a"), dead_letter(3, step="b"))
    box = DeadLetters(log, QUERY)
    done = box.replay(Selection(positions=frozenset({(0, 0)})))
    assert (done.records, done.dead_letters) == (1, 2)
    assert [(found.step, found.offset) for found in box.read()] == [("a", 4)]
    box.replay()
    assert [r.value for r in read_all(log, "orders")[6:]] == [b"order 3", b"order 4"]


def test_what_cannot_be_replayed_stays_open_and_is_counted_by_reason(embedded: EmbeddedBroker) -> None:
    fill(
        embedded,
        dead_letter(-1, topic="", partition=-1),
        dead_letter(0, topic="gone"),
        dead_letter(0, partition=9),
        dead_letter(99, bytes="seen"),
        dead_letter(1),
        dead_letter(2),
    )
    embedded.max_record_bytes = 29
    box = DeadLetters(embedded, QUERY)
    done = box.replay()
    assert done.left == {MADE_INSIDE: 1, NO_TOPIC: 2, NO_BYTES: 1, REFUSED: 2}, "a header has made them too large"
    embedded.max_record_bytes = 1_000
    assert (box.replay().records, box.count()) == (2, 4)


def test_a_record_that_is_no_longer_in_the_log_is_replayed_from_its_dead_letter(embedded: EmbeddedBroker) -> None:
    fill(embedded, dead_letter(90), dead_letter(91, time="-5", record=LogRecord(None, None)))
    DeadLetters(embedded, QUERY).replay()
    sent = read_all(embedded, "orders")[6:]
    assert [(r.key, r.value, r.timestamp_ms) for r in sent] == [(b"k90", b"order 90", 7), (None, None, -5)]
    assert [dict(r.headers) for r in sent] == [{"trace": b"90", "potok.replayed": b"1"}, {"potok.replayed": b"1"}]


def test_another_record_at_the_same_position_is_not_replayed(embedded: EmbeddedBroker) -> None:
    fill(embedded, dead_letter(1, record=order(77)))
    DeadLetters(embedded, QUERY).replay()
    assert read_all(embedded, "orders")[-1].value == b"order 77"


def test_a_truncated_dead_letter_is_replayed_from_the_topic(embedded: EmbeddedBroker) -> None:
    start = LogRecord(b"k1", b"ord", headers=(("trace", b"1"),))
    other = LogRecord(b"k1", b"cat", headers=(("trace", b"1"),))
    fill(embedded, dead_letter(1, record=start, bytes="cut"), dead_letter(2, record=other, bytes="cut"))
    done = DeadLetters(embedded, QUERY).replay()
    assert [r.value for r in read_all(embedded, "orders")[6:]] == [b"order 1"]
    assert done.left == {NO_BYTES: 1}


def test_dead_letters_are_selected_by_each_criterion(embedded: EmbeddedBroker) -> None:
    fill(
        embedded,
        dead_letter(0, step="a", at=10),
        dead_letter(1, step="b", at=20, topic="clicks"),
        dead_letter(2, step="c", at=30),
    )
    box = DeadLetters(embedded, QUERY)
    assert steps(box, Selection(topic="clicks")) == ["b"]
    assert steps(box, Selection(since_ms=20)) == ["b", "c"]
    assert steps(box, Selection(until_ms=20)) == ["a"]
    assert steps(box, Selection(positions=frozenset({(0, 2), (None, 0), (1, 1), (0, 99)}))) == ["a", "c"]
    assert [found.step for found in box.latest(2)] == ["b", "c"]


def test_concurrent_replays_append_once(embedded: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(embedded, dead_letter(1), dead_letter(2))
    one, two = DeadLetters(embedded, QUERY), DeadLetters(embedded, QUERY)
    publish = embedded.publish

    def later(*arguments: object) -> None:
        monkeypatch.setattr(embedded, "publish", publish)
        two.replay(Selection(positions=frozenset({(0, 0)})))
        publish(*arguments)

    monkeypatch.setattr(embedded, "publish", later)
    with pytest.raises(DeadLettersChanged):
        one.replay()
    assert len(read_all(embedded, "orders")) == 7
    assert one.replay().records == 1
    assert len(read_all(embedded, "orders")) == 8


def test_a_replay_of_many_records_keeps_their_order(embedded: EmbeddedBroker) -> None:
    count = 1_203
    fill(embedded, *(dead_letter(offset) for offset in reversed(range(count))), orders=count)
    assert DeadLetters(embedded, QUERY).replay().records == count
    assert [r.value for r in read_all(embedded, "orders")[count:]] == [b"order %d" % n for n in range(count)]


def test_purge_removes_the_selected_dead_letters_only(log: Broker) -> None:
    fill(log, dead_letter(0, step="a"), dead_letter(1, step="b"), dead_letter(2, step="a"), dead_letter(3, step="c"))
    box = DeadLetters(log, QUERY)
    purged = box.purge(Selection(step="a"))
    assert purged.dead_letters == 2
    assert purged.removed == (2 if isinstance(log, EmbeddedBroker) else 1), "Kafka cuts off the beginning alone"
    assert steps(box, replayed=True) == ["b", "c"]
    assert box.purge(Selection(step="a")).dead_letters == 0
    assert box.purge(Selection(step="b")).dead_letters == 1
    assert [found.offset for found in read_all(log, TOPIC)] == [3]
    assert (steps(box), box.count()) == (["c"], 1)
    assert len(read_all(log, "orders")) == 6


def test_replayed_dead_letters_are_purged_on_request(embedded: EmbeddedBroker) -> None:
    fill(embedded, dead_letter(0), dead_letter(1))
    box = DeadLetters(embedded, QUERY)
    box.replay(Selection(positions=frozenset({(0, 0)})))
    assert box.purge(replayed=True, dry_run=True).dead_letters == 2
    assert box.purge().dead_letters == 1
    assert steps(box, replayed=True) == ["parse"]
    assert box.purge(replayed=True).dead_letters == 1
    assert steps(box, replayed=True) == []


def test_the_next_purge_removes_what_an_earlier_one_could_not(embedded: EmbeddedBroker) -> None:
    fill(embedded, dead_letter(0), dead_letter(1))
    embedded.set_protected("reader", {(TOPIC, 0): 0})
    box = DeadLetters(embedded, QUERY)
    assert (box.purge().removed, steps(box)) == (0, [])
    embedded.set_protected("reader", {})
    assert box.purge().removed == 2


def test_a_recreated_dead_letter_topic_has_no_resolved_dead_letters(embedded: EmbeddedBroker) -> None:
    fill(embedded, dead_letter(0))
    DeadLetters(embedded, QUERY).replay()
    embedded.delete_topic(TOPIC)
    embedded.create_topic(TOPIC)
    embedded.append(TOPIC, [dead_letter(1), dead_letter(2)])
    box = DeadLetters(embedded, QUERY)
    assert steps(box) == ["parse", "parse"]
    box.replay(Selection(positions=frozenset({(0, 1)})))
    assert len(embedded.list_metadata(f"dead_letters/{TOPIC}/")) == 1, "those of the deleted topic are removed"
