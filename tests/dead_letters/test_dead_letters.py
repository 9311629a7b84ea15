"""Dead letters are looked at, replayed and purged, on the embedded log and on Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from log.records import read_all
from potok.dead_letters.dead_letters import DeadLetters
from potok.dead_letters.read import Fate
from potok.dead_letters.replay import MADE_INSIDE, NO_BYTES, NO_TOPIC, REFUSED
from potok.dead_letters.resolved import LettersChanged
from potok.dead_letters.selection import Wanted
from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from snapshots.letters import QUERY, TOPIC, fill, letter, order


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


def steps(box: DeadLetters, wanted: Wanted = Wanted(), *, replayed: bool = False) -> list[str]:
    return [found.step for found in box.letters(wanted, replayed=replayed)]


def test_a_query_without_a_topic_of_dead_letters_has_none(log: Broker) -> None:
    box = DeadLetters(log, QUERY)
    assert (steps(box), box.latest(5), box.count(), box.replay().records, box.purge().letters) == ([], [], 0, 0, 0)


def test_a_replayed_record_comes_as_it_was_to_where_it_was_and_is_done_with(log: Broker) -> None:
    fill(log, letter(4, partition=1), letter(1, partition=1), letter(2), partitions=2)
    box = DeadLetters(log, QUERY)
    assert box.count() == 3
    done = box.replay()
    assert (done.letters, done.records, done.left) == (3, 3, {})
    assert done.appended == {("orders", 0): 1, ("orders", 1): 2}
    replayed = {partition: read_all(log, "orders", partition)[6:] for partition in (0, 1)}
    assert [(r.key, r.value, r.timestamp_ms) for r in replayed[1]] == [
        (b"k1", b"order 1", 5_001),
        (b"k4", b"order 4", 5_004),
    ], "in the order of their positions, not in that of the letters"
    assert replayed[1][0].headers == (("trace", b"1"), ("potok.replayed", b"1"))
    assert [r.value for r in replayed[0]] == [b"order 2"]
    assert (steps(box), box.count(), box.replay().records) == ([], 0, 0)
    assert box.fates(list(box.letters(replayed=True))) == [Fate.REPLAYED] * 3
    assert steps(DeadLetters(log, QUERY)) == [], "whoever looks"


def test_a_record_that_fails_again_is_counted(log: Broker) -> None:
    fill(log, letter(2))
    box = DeadLetters(log, QUERY)
    box.replay()
    again = read_all(log, "orders")[-1]
    log.append(TOPIC, [letter(again.offset, record=again)])
    assert [found.replays for found in box.letters()] == [1]
    box.replay()
    assert read_all(log, "orders")[-1].headers == (("trace", b"2"), ("potok.replayed", b"2"))


def test_only_what_is_wanted_is_replayed(log: Broker) -> None:
    fill(log, letter(0, step="a"), letter(1, step="b", reason="late"), letter(2, step="b"))
    box = DeadLetters(log, QUERY)
    assert box.replay(Wanted(step="b", reason="error")).records == 1
    assert [r.value for r in read_all(log, "orders")[6:]] == [b"order 2"]
    assert steps(box) == ["a", "b"]


def test_a_dry_run_counts_and_changes_nothing(log: Broker) -> None:
    fill(log, letter(0), letter(0, topic=""), letter(1))
    box = DeadLetters(log, QUERY)
    planned = box.replay(dry_run=True)
    assert (planned.records, planned.left) == (2, {MADE_INSIDE: 1})
    assert box.purge(dry_run=True).letters == 3
    assert (box.count(), len(read_all(log, "orders"))) == (3, 6)


def test_a_record_that_several_steps_set_aside_is_appended_once(log: Broker) -> None:
    fill(log, letter(3, step="a"), letter(4, step="a"), letter(3, step="b"))
    box = DeadLetters(log, QUERY)
    done = box.replay(Wanted(places=frozenset({(0, 0)})))
    assert (done.records, done.letters) == (1, 2)
    assert [(found.step, found.offset) for found in box.letters()] == [("a", 4)]
    box.replay()
    assert [r.value for r in read_all(log, "orders")[6:]] == [b"order 3", b"order 4"]


def test_what_cannot_be_replayed_stays_and_is_told_by_reason(embedded: EmbeddedBroker) -> None:
    fill(
        embedded,
        letter(-1, topic="", partition=-1),
        letter(0, topic="gone"),
        letter(0, partition=9),
        letter(99, bytes="seen"),
        letter(1),
        letter(2),
    )
    embedded.max_record_bytes = 29
    box = DeadLetters(embedded, QUERY)
    done = box.replay()
    assert done.left == {MADE_INSIDE: 1, NO_TOPIC: 2, NO_BYTES: 1, REFUSED: 2}, "a header has made them too large"
    embedded.max_record_bytes = 1_000
    assert (box.replay().records, box.count()) == (2, 4)


def test_a_record_that_is_gone_is_sent_as_its_letter_has_it(embedded: EmbeddedBroker) -> None:
    fill(embedded, letter(90), letter(91, time="-5", record=LogRecord(None, None)))
    DeadLetters(embedded, QUERY).replay()
    sent = read_all(embedded, "orders")[6:]
    assert [(r.key, r.value, r.timestamp_ms) for r in sent] == [(b"k90", b"order 90", 7), (None, None, -5)]
    assert [dict(r.headers) for r in sent] == [{"trace": b"90", "potok.replayed": b"1"}, {"potok.replayed": b"1"}]


def test_a_position_that_means_another_record_is_not_trusted(embedded: EmbeddedBroker) -> None:
    fill(embedded, letter(1, record=order(77)))
    DeadLetters(embedded, QUERY).replay()
    assert read_all(embedded, "orders")[-1].value == b"order 77"


def test_a_letter_that_was_cut_is_replayed_from_the_topic(embedded: EmbeddedBroker) -> None:
    start = LogRecord(b"k1", b"ord", headers=(("trace", b"1"),))
    other = LogRecord(b"k1", b"cat", headers=(("trace", b"1"),))
    fill(embedded, letter(1, record=start, bytes="cut"), letter(2, record=other, bytes="cut"))
    done = DeadLetters(embedded, QUERY).replay()
    assert [r.value for r in read_all(embedded, "orders")[6:]] == [b"order 1"]
    assert done.left == {NO_BYTES: 1}


def test_letters_are_found_by_all_that_is_known_of_them(embedded: EmbeddedBroker) -> None:
    fill(embedded, letter(0, step="a", at=10), letter(1, step="b", at=20, topic="clicks"), letter(2, step="c", at=30))
    box = DeadLetters(embedded, QUERY)
    assert steps(box, Wanted(topic="clicks")) == ["b"]
    assert steps(box, Wanted(since_ms=20)) == ["b", "c"]
    assert steps(box, Wanted(until_ms=20)) == ["a"]
    assert steps(box, Wanted(places=frozenset({(0, 2), (None, 0), (1, 1), (0, 99)}))) == ["a", "c"]
    assert [found.step for found in box.latest(2)] == ["b", "c"]


def test_two_who_replay_at_once_do_not_send_twice(embedded: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(embedded, letter(1), letter(2))
    one, two = DeadLetters(embedded, QUERY), DeadLetters(embedded, QUERY)
    publish = embedded.publish

    def later(*arguments: object) -> None:
        monkeypatch.setattr(embedded, "publish", publish)
        two.replay(Wanted(places=frozenset({(0, 0)})))
        publish(*arguments)

    monkeypatch.setattr(embedded, "publish", later)
    with pytest.raises(LettersChanged):
        one.replay()
    assert len(read_all(embedded, "orders")) == 7
    assert one.replay().records == 1
    assert len(read_all(embedded, "orders")) == 8


def test_a_replay_of_many_keeps_their_order(embedded: EmbeddedBroker) -> None:
    count = 1_203
    fill(embedded, *(letter(offset) for offset in reversed(range(count))), orders=count)
    assert DeadLetters(embedded, QUERY).replay().records == count
    assert [r.value for r in read_all(embedded, "orders")[count:]] == [b"order %d" % n for n in range(count)]


def test_purged_letters_are_gone_and_the_others_stay(log: Broker) -> None:
    fill(log, letter(0, step="a"), letter(1, step="b"), letter(2, step="a"), letter(3, step="c"))
    box = DeadLetters(log, QUERY)
    purged = box.purge(Wanted(step="a"))
    assert purged.letters == 2
    assert purged.removed == (2 if isinstance(log, EmbeddedBroker) else 1), "Kafka cuts off the beginning alone"
    assert steps(box, replayed=True) == ["b", "c"]
    assert box.purge(Wanted(step="a")).letters == 0
    assert box.purge(Wanted(step="b")).letters == 1
    assert [found.offset for found in read_all(log, TOPIC)] == [3]
    assert (steps(box), box.count()) == (["c"], 1)
    assert len(read_all(log, "orders")) == 6


def test_what_was_replayed_is_purged_when_asked_for(embedded: EmbeddedBroker) -> None:
    fill(embedded, letter(0), letter(1))
    box = DeadLetters(embedded, QUERY)
    box.replay(Wanted(places=frozenset({(0, 0)})))
    assert box.purge(replayed=True, dry_run=True).letters == 2
    assert box.purge().letters == 1
    assert steps(box, replayed=True) == ["parse"]
    assert box.purge(replayed=True).letters == 1
    assert steps(box, replayed=True) == []


def test_what_could_not_be_removed_goes_with_the_next_purge(embedded: EmbeddedBroker) -> None:
    fill(embedded, letter(0), letter(1))
    embedded.set_protected("reader", {(TOPIC, 0): 0})
    box = DeadLetters(embedded, QUERY)
    assert (box.purge().removed, steps(box)) == (0, [])
    embedded.set_protected("reader", {})
    assert box.purge().removed == 2


def test_a_topic_of_dead_letters_that_was_created_again_begins_anew(embedded: EmbeddedBroker) -> None:
    fill(embedded, letter(0))
    DeadLetters(embedded, QUERY).replay()
    embedded.delete_topic(TOPIC)
    embedded.create_topic(TOPIC)
    embedded.append(TOPIC, [letter(1), letter(2)])
    box = DeadLetters(embedded, QUERY)
    assert steps(box) == ["parse", "parse"]
    box.replay(Wanted(places=frozenset({(0, 1)})))
    assert len(embedded.list_metadata(f"letters/{TOPIC}/")) == 1, "what was known of the other topic is forgotten"
