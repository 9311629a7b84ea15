"""Consumers of one group share the partitions; all of it in one process, several members at once."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from log.waiting import until
from potok.errors import LogError
from potok.log.clients.consumer import Consumer
from potok.log.consumer_groups import PartitionId
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import GroupHasMembers, InvalidName, PartitionsMovedError, TopicNotFound
from potok.records.log_record import LogRecord


@pytest.fixture
def members() -> Iterator[ExitStack]:
    """Closes what a test entered, also where it fails."""
    with ExitStack() as stack:
        yield stack


def fill(broker: EmbeddedBroker, partitions: int, each: int, first: int = 0) -> None:
    broker.create_topic("t", partitions, exist_ok=True)
    for partition in range(partitions):
        broker.append("t", [LogRecord(None, b"%d:%d" % (partition, n)) for n in range(first, first + each)], partition)


def texts(consumer: Consumer) -> list[str | None]:
    return [record.text() for record in consumer.poll()]


def shared(*consumers: Consumer) -> list[list[PartitionId]]:
    """What each of them reads, once all of it is handed over."""
    until(lambda: _settled(consumers))
    return [consumer.assignment() for consumer in consumers]


def _settled(consumers: tuple[Consumer, ...]) -> bool:
    owned = [place for consumer in consumers for place in consumer.assignment()]
    broker = consumers[0].broker
    described = broker.describe_group(consumers[0].group or "")
    planned = {member.member: len(member.topic_partitions) for member in described.members}
    counts = [len(consumer.assignment()) for consumer in consumers]
    return len(owned) == len(set(owned)) == broker.partitions("t") and max(planned.values()) - min(counts) <= 1


def test_two_members_share_the_partitions_and_each_record_goes_to_one(
    broker: EmbeddedBroker, members: ExitStack
) -> None:
    fill(broker, 4, 5)
    first = members.enter_context(Consumer(broker, "t", group="g", start="earliest"))
    assert first.assignment() == [("t", n) for n in range(4)]
    second = members.enter_context(Consumer(broker, "t", group="g", start="earliest"))
    assert second.assignment() == []
    assert sorted(map(len, shared(first, second))) == [2, 2]
    found = Counter(texts(first) + texts(second))
    assert found == Counter(f"{part}:{n}" for part in range(4) for n in range(5))


def test_every_group_gets_all_records(broker: EmbeddedBroker, members: ExitStack) -> None:
    fill(broker, 2, 3)
    for group in ("billing", "shipping"):
        consumer = members.enter_context(Consumer(broker, "t", group=group, start="earliest"))
        assert len(texts(consumer)) == 6


def test_more_members_than_partitions_leaves_some_without(broker: EmbeddedBroker, members: ExitStack) -> None:
    fill(broker, 1, 1)
    first = members.enter_context(Consumer(broker, "t", group="g", start="earliest"))
    second = members.enter_context(Consumer(broker, "t", group="g", start="earliest"))
    assert shared(first, second) == [[("t", 0)], []]
    assert (texts(first), texts(second)) == (["0:0"], [])


def test_a_member_that_leaves_hands_its_partitions_over_at_once(broker: EmbeddedBroker, members: ExitStack) -> None:
    fill(broker, 2, 3)
    first = Consumer(broker, "t", group="g", start="earliest", lease=3600)
    second = members.enter_context(Consumer(broker, "t", group="g", start="earliest", lease=3600))
    shared(first, second)
    assert len(first.poll(max_records=2)) == 2
    first.commit()
    first.close()
    until(lambda: len(second.assignment()) == 2)
    assert len(texts(second)) == 4


def test_a_member_that_is_forgotten_leaves_too(broker: EmbeddedBroker, members: ExitStack) -> None:
    fill(broker, 1, 1)
    Consumer(broker, "t", group="g", lease=3600).assignment()
    gc.collect()
    second = members.enter_context(Consumer(broker, "t", group="g", lease=3600))
    until(lambda: second.assignment() == [("t", 0)])


def test_callbacks_report_assigned_and_revoked_partitions(broker: EmbeddedBroker, members: ExitStack) -> None:
    fill(broker, 2, 1)
    reported: list[tuple[str, list[PartitionId]]] = []
    first = Consumer(
        broker,
        "t",
        group="g",
        on_assign=lambda partitions: reported.append(("assign", partitions)),
        on_revoke=lambda partitions: reported.append(("revoke", partitions)),
    )
    assert reported == []
    first.poll()
    assert reported == [("assign", [("t", 0), ("t", 1)])]
    second = members.enter_context(Consumer(broker, "t", group="g"))
    shared(first, second)
    assert reported[1][0] == "revoke" and len(reported[1][1]) == 1
    first.close()
    assert reported[2] == ("revoke", [place for place in [("t", 0), ("t", 1)] if place not in reported[1][1]])
    assert len(reported) == 3


def test_what_on_revoke_commits_counts(broker: EmbeddedBroker, members: ExitStack) -> None:
    fill(broker, 2, 5)
    first = Consumer(broker, "t", group="g", start="earliest", on_revoke=lambda _: first.commit())
    members.enter_context(first)
    assert len(first.poll()) == 10
    second = members.enter_context(Consumer(broker, "t", group="g", start="earliest"))
    shared(first, second)
    assert texts(second) == []
    assert broker.committed("g", "t") == {0: 5, 1: 5}


def test_after_an_error_nothing_is_committed_on_the_way_out(broker: EmbeddedBroker) -> None:
    fill(broker, 1, 3)
    consumer = Consumer(broker, "t", group="g", start="earliest", on_revoke=lambda _: consumer.commit())

    def stumble() -> None:
        with consumer:
            consumer.poll()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stumble()
    assert broker.committed("g", "t") == {0: 0}
    assert len(texts(Consumer(broker, "t", group="g"))) == 3


def test_a_failing_callback_is_reported_once_and_the_partitions_move(
    broker: EmbeddedBroker, members: ExitStack
) -> None:
    fill(broker, 2, 1)

    def fail(partitions: list[PartitionId]) -> None:
        raise ZeroDivisionError

    first = Consumer(broker, "t", group="g", start="earliest", on_revoke=fail)
    members.callback(first._leave)
    first.poll()
    second = members.enter_context(Consumer(broker, "t", group="g", start="earliest"))
    with pytest.raises(ZeroDivisionError):
        until(lambda: first.poll() is None)
    assert sorted(map(len, shared(first, second))) == [1, 1]


def test_a_member_that_was_taken_out_joins_again_although_its_callback_failed(
    broker: EmbeddedBroker, members: ExitStack
) -> None:
    fill(broker, 1, 2)
    reported: list[list[PartitionId]] = []

    def fail_once(partitions: list[PartitionId]) -> None:
        reported.append(partitions)
        if len(reported) == 1:
            raise ZeroDivisionError

    consumer = Consumer(broker, "t", group="g", start="earliest", on_revoke=fail_once, max_pause="100 ms")
    members.enter_context(consumer)
    assert len(consumer.poll()) == 2
    until(lambda: not broker.describe_group("g").members)
    with pytest.raises(ZeroDivisionError):
        consumer.poll()
    assert len(consumer.poll()) == 2
    assert reported == [[("t", 0)]]


def test_a_partition_is_read_although_its_start_was_unknown_at_first(
    broker: EmbeddedBroker, members: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker, 1, 2)
    consumer = members.enter_context(Consumer(broker, "t", group="g", start="earliest"))
    with monkeypatch.context() as patched:
        patched.setattr(broker, "committed", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            consumer.poll()
    assert len(consumer.poll()) == 2


def test_a_consumer_whose_last_callback_fails_leaves_all_the_same(broker: EmbeddedBroker) -> None:
    fill(broker, 1, 1)
    consumer = Consumer(broker, "t", group="g", start="earliest", on_revoke=lambda _: 1 // 0)
    consumer.poll()
    with pytest.raises(ZeroDivisionError):
        consumer.close()
    assert broker.describe_group("g").members == ()


def test_what_on_assign_commits_counts(broker: EmbeddedBroker) -> None:
    fill(broker, 1, 5)
    consumer = Consumer(broker, "t", group="g", on_assign=lambda _: (consumer.seek("t", 0, 3), consumer.commit()))
    with consumer:
        assert texts(consumer) == ["0:3", "0:4"]
    assert broker.committed("g", "t") == {0: 3}


def test_on_assign_may_seek(broker: EmbeddedBroker) -> None:
    fill(broker, 1, 5)
    consumer = Consumer(broker, "t", group="g", on_assign=lambda _: consumer.seek("t", 0, 3))
    with consumer:
        assert texts(consumer) == ["0:3", "0:4"]


def test_a_member_whose_lease_ran_out_cannot_commit(broker: EmbeddedBroker, members: ExitStack) -> None:
    fill(broker, 1, 4)
    first = members.enter_context(Consumer(broker, "t", group="g", start="earliest", max_pause="100 ms"))
    assert len(first.poll(max_records=2)) == 2
    second = members.enter_context(Consumer(broker, "t", group="g", start="earliest"))
    until(lambda: second.assignment() == [("t", 0)])
    second.poll(max_records=3)
    second.commit()
    with pytest.raises(PartitionsMovedError, match=r"t:0 .*nothing was committed"):
        first.commit()
    assert broker.committed("g", "t") == {0: 3}
    assert texts(first) == []


def test_a_partition_that_was_lost_and_came_back_starts_where_it_was_committed(
    broker: EmbeddedBroker, members: ExitStack
) -> None:
    fill(broker, 1, 6)
    reported: list[str] = []
    first = Consumer(
        broker,
        "t",
        group="g",
        start="earliest",
        max_pause="100 ms",
        on_assign=lambda _: reported.append("assign"),
        on_revoke=lambda _: reported.append("revoke"),
    )
    members.enter_context(first)
    first.poll(max_records=1)
    with Consumer(broker, "t", group="g", start="earliest") as second:
        until(lambda: second.poll(max_records=4))
        second.commit()
    with pytest.raises(PartitionsMovedError):
        first.commit()
    assert texts(first) == ["0:4", "0:5"]
    assert reported == ["assign", "revoke", "assign"]


def test_iterating_stops_at_the_record_where_a_partition_is_reassigned(
    broker: EmbeddedBroker, members: ExitStack
) -> None:
    fill(broker, 2, 500)
    first = Consumer(broker, "t", group="g", start="earliest", on_revoke=lambda _: first.commit())
    members.enter_context(first)
    second: Consumer | None = None
    seen: Counter[str | None] = Counter()
    for record in first:
        seen[record.text()] += 1
        if second is None:
            second = members.enter_context(Consumer(broker, "t", group="g", start="earliest"))
            until(lambda: first._membership is not None and first._membership.changed())
        if len(first.assignment()) == 1:
            break
    assert second is not None
    until(lambda: len(second.assignment()) == 1)
    first.close()
    until(lambda: len(second.assignment()) == 2)
    seen.update(texts(second))
    assert seen == Counter(f"{part}:{n}" for part in range(2) for n in range(500))


def test_until_the_end_waits_for_partitions_that_are_on_their_way(broker: EmbeddedBroker) -> None:
    fill(broker, 2, 2)
    first = Consumer(broker, "t", group="g", start="earliest")
    first.poll(max_records=1)
    second = Consumer(broker, "t", group="g", start="earliest", until_end=True)
    found = iter(second)
    release = threading.Thread(target=lambda: until(lambda: first.poll() is not None and len(first.assignment()) == 1))
    release.start()
    assert len([next(found), next(found)]) == 2
    release.join(30)
    assert list(found) == []
    first.close()
    second.close()


def test_where_a_group_started_is_remembered_without_a_commit(broker: EmbeddedBroker) -> None:
    fill(broker, 1, 3)
    with Consumer(broker, "t", group="g", start="latest") as first:
        assert texts(first) == []
    fill(broker, 1, 2, first=3)
    with Consumer(broker, "t", group="g") as second:
        assert texts(second) == ["0:3", "0:4"]


def test_offsets_of_an_active_group_cannot_be_set_from_outside(broker: EmbeddedBroker) -> None:
    fill(broker, 1, 3)
    with Consumer(broker, "t", group="g"), pytest.raises(GroupHasMembers, match="a member"):
        broker.commit("g", "t", {0: 1})
    broker.commit("g", "t", {0: 1})
    assert broker.committed("g", "t") == {0: 1}


def test_a_group_is_described_with_members_and_offsets(broker: EmbeddedBroker) -> None:
    fill(broker, 2, 3)
    broker.commit("old", "t", {1: 2})
    with Consumer(broker, "t", group="g", start="earliest") as consumer:
        consumer.poll()
        consumer.commit()
        assert broker.groups() == ["g", "old"]
        described = broker.describe_group("g")
        assert [member.topic_partitions for member in described.members] == [(("t", 0), ("t", 1))]
        assert (described.committed, described.topics) == ({"t": {0: 3, 1: 3}}, ["t"])
        assert described.owner(("t", 0)) is described.members[0]
    assert broker.describe_group("g").members == ()
    assert broker.describe_group("nobody").committed == {}


def test_a_topic_that_does_not_exist_is_an_error_at_once(broker: EmbeddedBroker) -> None:
    with pytest.raises(TopicNotFound):
        Consumer(broker, "nothing", group="g")
    assert broker.groups() == []


def test_a_name_that_cannot_be_stored_is_refused(broker: EmbeddedBroker) -> None:
    fill(broker, 1, 1)
    for name in ("", "x" * 401, "a\0b"):
        with pytest.raises(InvalidName):
            Consumer(broker, "t", group=name)


def test_a_lease_that_cannot_be_renewed_in_time_is_refused(broker: EmbeddedBroker) -> None:
    fill(broker, 1, 1)
    with pytest.raises(LogError, match="100 ms or more"):
        Consumer(broker, "t", group="g", lease="10 ms")


def test_a_consumer_can_be_closed_after_its_broker(broker: EmbeddedBroker) -> None:
    fill(broker, 1, 1)
    consumer = Consumer(broker, "t", group="g")
    consumer.poll()
    broker.close()
    consumer.close()


def test_a_closed_consumer_says_so(broker: EmbeddedBroker) -> None:
    fill(broker, 1, 1)
    consumer = Consumer(broker, "t", group="g")
    consumer.close()
    with pytest.raises(LogError, match="closed consumer"):
        consumer.commit()


def test_seeking_in_a_partition_of_another_member_is_explained(broker: EmbeddedBroker, members: ExitStack) -> None:
    fill(broker, 1, 1)
    members.enter_context(Consumer(broker, "t", group="g"))
    second = members.enter_context(Consumer(broker, "t", group="g"))
    with pytest.raises(LogError, match="another member of its group"):
        second.seek("t", 0, 0)
    with pytest.raises(TopicNotFound):
        second.seek("t", 7, 0)


def test_members_may_read_different_topics(broker: EmbeddedBroker, members: ExitStack) -> None:
    fill(broker, 2, 1)
    broker.create_topic("u", 2)
    both = members.enter_context(Consumer(broker, ["t", "u"], group="g", start="earliest"))
    one = members.enter_context(Consumer(broker, "t", group="g", start="earliest"))
    both.poll()
    until(lambda: both.assignment() == [("u", 0), ("u", 1)] and len(one.assignment()) == 2)
