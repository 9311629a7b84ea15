"""A share that was begun is done to the same end, whoever died in between."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.shared.by_hand import ByHand, counting, send
from potok.engine.shared.roll import Roll, roll_mark
from potok.engine.shared.shares import Share
from potok.log.embedded.embedded_broker import EmbeddedBroker


def test_the_same_members_go_on_after_the_end_of_the_process_with_the_share_that_was_begun(tmp_path: Path) -> None:
    first = ByHand(tmp_path)
    first.add(counting("one"))
    send(first.broker, 10)
    assert first.plan()
    send(first.broker, 10)
    kill(first)

    second = ByHand(tmp_path)
    second.add(counting("one"))
    second.step()
    assert sum(second.counts("one").values()) == 10
    second.settle()
    assert sum(second.counts("one").values()) == 20
    second.stop()


def test_a_batch_that_spark_runs_again_before_its_members_are_there_is_kept_for_them(tmp_path: Path) -> None:
    first = ByHand(tmp_path)
    first.add(counting("one"))
    send(first.broker, 10)
    assert first.plan()
    kill(first)

    second = ByHand(tmp_path)
    second._number -= 1
    second.run()
    send(second.broker, 10)
    second.add(counting("one"))
    second.step()
    assert sum(second.counts("one").values()) == 10
    second.stop()


def test_a_share_that_was_committed_before_the_end_of_the_process_is_not_done_again(tmp_path: Path) -> None:
    first = ByHand(tmp_path)
    first.add(counting("one"))
    send(first.broker, 10)
    first.settle()
    kill(first)

    second = ByHand(tmp_path)
    second.add(counting("one"))
    second._number -= 1
    second.run()
    assert second.settle() == 0
    assert sum(second.counts("one").values()) == 10
    assert second.batch_of("one") == 1
    second.stop()


def test_a_share_of_a_member_that_was_set_elsewhere_is_forgotten(tmp_path: Path) -> None:
    from potok.engine.repair import reset

    first = ByHand(tmp_path)
    send(first.broker, 10)
    first.add(counting("one"))
    first.settle()
    send(first.broker, 10)
    assert first.plan()
    kill(first)
    wanted = {"orders": {0: 0, 1: 0}}
    reset(first.broker, "one", lambda: wanted, drop_state=True, keep_state=False)

    second = ByHand(tmp_path)
    second.add(counting("one"))
    assert second.settle() == 1, "all in one batch, as if nothing had been owed"
    assert sum(second.counts("one").values()) == 20
    second.stop()


def test_a_share_of_a_member_that_was_forgotten_is_owed_by_nobody(tmp_path: Path) -> None:
    from potok.engine.repair import forget

    shared = ByHand(tmp_path)
    send(shared.broker, 10)
    shared.add(counting("one"))
    assert shared.plan()
    shared.remove("one")
    shared.run()
    assert list(owed(shared)) == ["one"]
    forget(shared.broker, "one")
    shared.add(counting("two"))
    assert owed(shared) == {}
    shared.stop()


def owed(shared: ByHand) -> Mapping[str, Share]:
    return Roll.of_bytes(shared.broker.mark(roll_mark(shared.name))).owed


def kill(shared: ByHand) -> None:
    """Let go of the locks, as the end of a process does, and close nothing."""
    for member in shared._members.values():
        member.prepared.release()
    shared._lock.release()
    assert isinstance(shared.broker, EmbeddedBroker)
