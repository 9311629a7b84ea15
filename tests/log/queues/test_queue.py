from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest

from log.records import read_all
from log.waiting import until
from potok.errors import LogError
from potok.log.clients.consumer import Consumer
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import FellBehindError, InvalidName, OffsetOutOfRange, TopicNotFound
from potok.log.queues.delivery import Delivery
from potok.log.queues.queue import Queue
from potok.log.queues.queue_state import QueueCounts
from potok.log.queues.queue_store import queues
from potok.records.log_record import LogRecord

LONG = 3600


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    broker.create_topic("work", 2)
    return "work"


def fill(broker: EmbeddedBroker, count: int, first: int = 0) -> None:
    broker.append("work", [LogRecord(b"k%d" % n, b"%d" % n, n + 1) for n in range(first, first + count)])


def numbers(deliveries: list[Delivery]) -> list[int]:
    return sorted(delivery.json() for delivery in deliveries)


def all_of(queue: Queue, count: int) -> Iterator[Delivery]:
    return islice(queue, count)


def test_every_record_is_handed_out_once(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 50)
    with Queue(broker, topic, "g", visibility=LONG) as queue:
        found = [delivery for _ in range(4) for delivery in queue.receive(20)]
        assert numbers(found) == list(range(50))
        assert queue.receive(20) == []
        assert queue.counts() == QueueCounts(out=50)
        for delivery in found:
            delivery.ack()
        assert queue.counts() == QueueCounts()
    with Queue(broker, topic, "g", visibility=LONG) as queue:
        assert queue.receive(20) == []


def test_workers_of_a_group_get_different_records_and_each_group_gets_all(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 40)
    with (
        Queue(broker, topic, "g", visibility=LONG) as first,
        Queue(broker, topic, "g", visibility=LONG) as second,
        Queue(broker, topic, "other", visibility=LONG) as other,
    ):
        found = first.receive(10) + second.receive(10) + first.receive(10) + second.receive(100) + first.receive(100)
        assert numbers(found) == list(range(40))
        assert numbers(list(all_of(other, 40))) == list(range(40))


def test_what_is_not_acknowledged_in_time_comes_again(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 3)
    with Queue(broker, topic, "g", visibility="50 ms", max_deliveries=None) as queue:
        assert [delivery.deliveries for delivery in all_of(queue, 3)] == [1, 1, 1]
        again = next(delivery for delivery in queue if delivery.deliveries > 1)
        assert again.json() in range(3)


def test_what_is_put_back_comes_again_at_once_or_after_a_delay(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 2)
    with Queue(broker, topic, "g", visibility=LONG, max_deliveries=None) as queue:
        soon, late = all_of(queue, 2)
        soon.nack()
        late.nack(delay="1 h")
        (again,) = queue.receive(5, timeout=30)
        assert (again.json(), again.deliveries) == (soon.json(), 2)
        assert queue.counts() == QueueCounts(out=1, waiting=1)


def test_acknowledging_late_counts_all_the_same(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 1)
    with Queue(broker, topic, "g", visibility="20 ms", max_deliveries=None) as queue:
        (first,) = queue.receive(1)
        (second,) = queue.receive(1, timeout=30)
        first.ack()
        assert queue.counts() == QueueCounts()
        second.nack()
        assert queue.counts() == QueueCounts()


def test_a_claim_that_ran_out_cannot_put_back_what_another_process_has(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 1)
    with Queue(broker, topic, "g", visibility="20 ms", max_deliveries=None) as slow:
        (stale,) = slow.receive(1)
        with Queue(broker, topic, "g", visibility=LONG, max_deliveries=None) as queue:
            (fresh,) = queue.receive(1, timeout=30)
            stale.nack()
            slow.flush()
            assert queue.counts() == QueueCounts(out=1)
            fresh.ack()


def test_a_record_that_fails_too_often_becomes_a_dead_letter(broker: EmbeddedBroker, topic: str) -> None:
    broker.append(topic, [LogRecord(b"k", b"7", 9, (("trace", b"x"),))], 1)
    with Queue(broker, topic, "g", max_deliveries=3) as queue:
        for attempt in (1, 2, 3):
            (delivery,) = queue.receive(1, timeout=30)
            assert delivery.deliveries == attempt
            delivery.nack(error="no such user")
        assert queue.receive(1) == []
        assert queue.counts() == QueueCounts()
        assert queue.dead_letter_topic == "work-g-dead-letters"
    (letter,) = read_all(broker, "work-g-dead-letters")
    assert (letter.key, letter.value, letter.timestamp_ms) == (b"k", b"7", 9)
    assert dict(letter.headers) == {
        "trace": b"x",
        "potok.topic": b"work",
        "potok.partition": b"1",
        "potok.offset": b"0",
        "potok.step": b'queue "g"',
        "potok.reason": b"deliveries",
        "potok.error": b"delivered 3 times: no such user",
    }


def test_a_record_whose_workers_never_answer_becomes_a_dead_letter(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 1)
    with Queue(broker, topic, "g", visibility="20 ms", max_deliveries=2, dead_letters="aside") as queue:
        assert [len(queue.receive(1, timeout=30)) for _ in range(2)] == [1, 1]
        until(lambda: queue.receive(1) == [] and queue.counts() == QueueCounts())
    (letter,) = read_all(broker, "aside")
    assert dict(letter.headers)["potok.error"] == b"delivered 2 times, not settled within 20ms"


def test_a_record_that_is_rejected_is_set_aside_without_another_try(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 1)
    with Queue(broker, topic, "g") as queue:
        queue.receive(1)[0].reject("not an order")
    (letter,) = read_all(broker, "work-g-dead-letters")
    assert dict(letter.headers)["potok.reason"] == b"rejected"
    assert dict(letter.headers)["potok.error"] == b"not an order"


def test_a_group_whose_name_is_not_a_topic_needs_a_topic_for_dead_letters(broker: EmbeddedBroker, topic: str) -> None:
    with pytest.raises(InvalidName, match="dead_letters="):
        Queue(broker, topic, "команда")
    with Queue(broker, topic, "команда", dead_letters="aside"):
        pass


def test_a_delivery_as_a_block_is_acknowledged_or_put_back(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 1)
    with Queue(broker, topic, "g", max_deliveries=2) as queue:
        for wanted in (1, 2):
            (delivery,) = queue.receive(1, timeout=30)
            assert delivery.deliveries == wanted
            with pytest.raises(ZeroDivisionError), delivery:
                raise ZeroDivisionError("by zero")
        fill(broker, 1, first=1)
        (delivery,) = queue.receive(1, timeout=30)
        with delivery:
            pass
        assert queue.counts() == QueueCounts()
    (letter,) = read_all(broker, "work-g-dead-letters")
    assert dict(letter.headers)["potok.error"] == b"delivered 2 times: ZeroDivisionError: by zero"


def test_a_delivery_is_settled_once(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 1)
    with Queue(broker, topic, "g") as queue:
        (delivery,) = queue.receive(1)
        delivery.ack()
        delivery.ack()
        with pytest.raises(LogError, match="acknowledged already"):
            delivery.nack()
        with pytest.raises(LogError, match="acknowledged already"):
            delivery.extend(5)


def test_work_that_takes_longer_keeps_its_record(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 2)
    with Queue(broker, topic, "g", visibility="1 s", max_deliveries=None) as queue:
        kept, dropped = all_of(queue, 2)
        kept.extend(LONG)
        queue.flush()
        (again,) = queue.receive(5, timeout=30)
        assert again.json() == dropped.json()
        assert queue.counts().out >= 1


def test_what_is_not_settled_when_a_queue_is_closed_comes_again_at_once(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 5)
    with Queue(broker, topic, "g", visibility=LONG) as queue:
        held = list(all_of(queue, 3))
        held[0].ack()
    with pytest.raises(LogError, match="is closed"):
        held[1].ack()
    with Queue(broker, topic, "g", visibility=LONG) as queue:
        again = {delivery.json(): delivery.deliveries for delivery in all_of(queue, 4)}
        assert queue.receive(1) == []
    expected = dict.fromkeys(range(5), 1) | {delivery.json(): 2 for delivery in held[1:]}
    del expected[held[0].json()]
    assert again == expected


def test_prefetched_deliveries_that_were_not_read_are_redelivered_uncounted(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 400)
    with (
        Queue(broker, topic, "g", visibility=LONG) as fast,
        Queue(broker, topic, "g", visibility=LONG) as other,
    ):
        held = list(all_of(fast, 150))
        rest: list[Delivery] = []
        until(lambda: rest.extend(other.receive(1000)) or len(held) + len(rest) == 400)
        assert numbers(held + rest) == list(range(400))
        assert {delivery.deliveries for delivery in rest} == {1}


def test_prefetched_deliveries_can_be_polled_by_count(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 400)
    done = 0
    with Queue(broker, topic, "g", visibility=LONG) as queue:
        while queue.counts().ready:
            for _ in range(4):
                for delivery in queue.receive(10):
                    delivery.ack()
                    done += 1
    assert done == 400


def test_what_was_acknowledged_is_stored_before_long(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 1)
    queue = Queue(broker, topic, "g", visibility=LONG)
    queue.receive(1)[0].ack()
    with Queue(broker, topic, "g", visibility=LONG) as other:
        until(lambda: other.counts() == QueueCounts())
    queue.close()


def test_without_a_linger_what_was_acknowledged_is_stored_at_once(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 1)
    queue = Queue(broker, topic, "g", visibility=LONG, linger=0)
    queue.receive(1)[0].ack()
    assert Queue(broker, topic, "g").counts() == QueueCounts()


def test_a_queue_waits_for_records(broker: EmbeddedBroker, topic: str) -> None:
    with Queue(broker, topic, "g") as queue:
        late = threading.Thread(target=fill, args=(broker, 1))
        late.start()
        assert numbers(queue.receive(10, timeout=30)) == [0]
        late.join()


def test_iterating_ends_when_another_thread_closes_the_queue(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 1)
    queue = Queue(broker, topic, "g")
    found: list[Delivery] = []
    worker = threading.Thread(target=lambda: found.extend(queue))
    worker.start()
    until(lambda: found)
    queue.close()
    worker.join(30)
    assert not worker.is_alive()


def test_a_group_may_start_with_the_next_record(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 3)
    with Queue(broker, topic, "g", start="latest") as queue:
        assert queue.receive(5) == []
        fill(broker, 1, first=3)
        assert numbers(queue.receive(5)) == [3]


def test_offsets_that_compaction_left_empty_count_as_done(broker: EmbeddedBroker) -> None:
    broker.create_topic("latest", segment_bytes=1, cleanup_policy="compact")
    for n in range(6):
        broker.append("latest", [LogRecord(b"k", b"%d" % n)])
    broker.compact_topic("latest")
    left = [record.offset for record in read_all(broker, "latest")]
    assert len(left) < 6
    with Queue(broker, "latest", "g", visibility=LONG) as queue:
        found = queue.receive(10)
        assert [delivery.record.offset for delivery in found] == left
        for delivery in found:
            delivery.ack()
        assert queue.counts() == QueueCounts()


@pytest.mark.parametrize("wrong", [{"visibility": 0}, {"max_deliveries": 0}])
def test_a_queue_that_could_hand_out_nothing_is_refused(broker: EmbeddedBroker, topic: str, wrong: dict) -> None:
    with pytest.raises(LogError, match="above zero"):
        Queue(broker, topic, "g", **wrong)


def test_threads_share_one_queue(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 600)
    seen: Counter[int] = Counter()
    with Queue(broker, topic, "g", visibility=LONG) as queue:

        def work() -> None:
            while found := queue.receive(7):
                for delivery in found:
                    seen[delivery.json()] += 1
                    delivery.ack()

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert seen == Counter(range(600))
        assert queue.counts() == QueueCounts()


def test_a_queue_takes_nothing_from_others_who_read_the_topic(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 5)
    with Queue(broker, topic, "g") as queue:
        for delivery in all_of(queue, 5):
            delivery.ack()
    assert len(Consumer(broker, topic, start="earliest").poll()) == 5


def test_a_topic_created_again_is_a_new_queue(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, 5)
    queue = Queue(broker, topic, "g")
    queue.receive(5)
    broker.delete_topic(topic)
    with pytest.raises(TopicNotFound):
        queue.receive(5)
    broker.create_topic(topic, 2)
    with pytest.raises(OffsetOutOfRange):
        queue.receive(5)
    fill(broker, 1)
    with Queue(broker, topic, "g") as again:
        assert numbers(again.receive(5)) == [0]
    assert len(broker.list_metadata("queue/")) == 2
    assert queues(broker) == {"g": ["work"]}


@pytest.mark.parametrize("on_lost", ["stop", "jump"])
def test_records_deleted_before_they_were_done_are_missed(broker: EmbeddedBroker, on_lost: str) -> None:
    broker.create_topic("short", segment_bytes=1, retention_bytes=0)
    broker.append("short", [LogRecord(None, b"0"), LogRecord(None, b"1")])
    with Queue(broker, "short", "g") as queue:
        queue.receive(1)[0].ack()
    broker.append("short", [LogRecord(None, b"2")])
    with Queue(broker, "short", "g", on_lost=on_lost) as queue:  # type: ignore[arg-type]
        if on_lost == "jump":
            assert numbers(queue.receive(5)) == [2]
        else:
            for _ in range(2):
                with pytest.raises(FellBehindError, match=r'queue "g" fell behind: 1 record of "short"'):
                    queue.receive(5)


@pytest.mark.parametrize("record", [LogRecord(b"k", b"x" * 990), LogRecord(b"x" * 990, b"v", 1, (("h", b"y"),))])
def test_an_oversized_dead_letter_is_truncated_and_blocks_nothing(
    broker: EmbeddedBroker, topic: str, record: LogRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "max_record_bytes", 1_000)
    broker.append(topic, [record], 0)
    with Queue(broker, topic, "g", visibility=LONG, linger=0) as queue:
        queue.receive()[0].reject("no")
        assert queue.counts() == QueueCounts()
    (letter,) = read_all(broker, "work-g-dead-letters")
    assert dict(letter.headers)["potok.bytes"] == b"cut"
    assert dict(letter.headers)["potok.error"] == b"no"
    assert (record.value or b"").startswith(letter.value or b"")
