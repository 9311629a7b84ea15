from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.log.embedded import group_metadata
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.embedded.group_metadata import Enrolled, GroupMetadata, balance
from potok.log.errors import GroupHasMembers, PartitionsMovedError

LEASE = 1_000


@pytest.fixture
def group(broker: EmbeddedBroker) -> Group:
    broker.create_topic("t", 4)
    return Group(broker)


class Group:
    """Calls the functions of the roster on group "g", each in a transaction of its own, at a time the test says."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.metadata = broker._metadata

    def join(self, member: str, at: int) -> None:
        self.metadata.write(lambda txn: group_metadata.join(txn, "g", member, Enrolled("here", ("t",), LEASE), at))

    def do(self, work: Callable[..., None], *arguments: object) -> None:
        self.metadata.write(lambda txn: work(txn, "g", *arguments))

    @property
    def roster(self) -> GroupMetadata:
        return GroupMetadata.of_bytes(self.metadata.read(lambda txn: group_metadata.raw(txn, "g")))

    def owned(self, member: str) -> set[int]:
        return {partition for _, partition in self.roster.owned_by(member)}

    def leaving(self, member: str) -> list[tuple[str, int]]:
        return [place for place in self.roster.owned_by(member) if place not in self.roster.meant_for(member)]


def test_the_first_member_owns_everything_at_once(group: Group) -> None:
    group.join("a", 0)
    assert group.owned("a") == {0, 1, 2, 3}


def test_a_living_member_keeps_a_partition_until_it_lets_go(group: Group) -> None:
    group.join("a", 0)
    group.join("b", 0)
    assert (group.owned("a"), group.owned("b")) == ({0, 1, 2, 3}, set())
    leaving = group.leaving("a")
    assert len(leaving) == 2
    group.do(group_metadata.release, "a", leaving)
    assert group.owned("b") == {partition for _, partition in leaving}
    assert len(group.owned("a")) == 2


def test_a_member_that_is_not_heard_of_loses_its_partitions_when_its_lease_runs_out(group: Group) -> None:
    group.join("a", 0)
    group.join("b", 0)
    group.do(group_metadata.beat, "b", LEASE - 1)
    assert "a" in group.roster.members
    group.do(group_metadata.beat, "b", LEASE)
    assert "a" not in group.roster.members
    assert group.owned("b") == {0, 1, 2, 3}


def test_a_member_that_beats_in_time_stays(group: Group) -> None:
    group.join("a", 0)
    group.join("b", 0)
    for at in range(0, 5 * LEASE, LEASE // 3):
        group.do(group_metadata.beat, "a", at)
        group.do(group_metadata.beat, "b", at)
    assert set(group.roster.members) == {"a", "b"}


def test_a_beat_from_the_future_counts_no_longer_than_a_lease(group: Group) -> None:
    """The clock was set back by an hour: the dead are not kept for an hour, and the living are not thrown out."""
    group.join("dead", 3_600_000)
    group.join("alive", 3_600_000)
    group.do(group_metadata.beat, "alive", 0)
    assert set(group.roster.members) == {"alive"}


def test_who_is_off_the_roster_does_not_come_back_by_a_beat(group: Group) -> None:
    group.join("a", 0)
    group.join("b", LEASE)
    group.do(group_metadata.beat, "a", LEASE)
    assert set(group.roster.members) == {"b"}


def test_a_claim_of_an_earlier_generation_is_worth_nothing(group: Group, broker: EmbeddedBroker) -> None:
    group.join("a", 0)
    old = dict(group.roster.owned_by("a"))
    group.join("b", 0)
    moved = group.leaving("a")
    group.do(group_metadata.release, "a", moved)
    group.do(group_metadata.leave, "b", 0)
    assert group.owned("a") == {0, 1, 2, 3}
    with pytest.raises(PartitionsMovedError):
        group.do(group_metadata.commit, "a", {moved[0]: 5}, old)
    kept = next(place for place in old if place not in moved)
    group.do(group_metadata.commit, "a", {kept: 5}, old)
    group.do(group_metadata.commit, "a", {moved[0]: 6}, group.roster.owned_by("a"))
    assert broker.committed("g", "t") == {kept[1]: 5, moved[0][1]: 6}


def test_a_commit_that_is_refused_for_one_partition_counts_for_none(group: Group, broker: EmbeddedBroker) -> None:
    group.join("a", 0)
    held = group.roster.owned_by("a")
    group.join("b", 0)
    moved = group.leaving("a")
    group.do(group_metadata.release, "a", moved)
    with pytest.raises(PartitionsMovedError) as refused:
        group.do(group_metadata.commit, "a", dict.fromkeys(held, 9), held)
    assert all(f"t:{partition}" in refused.value.message for _, partition in moved)
    assert broker.committed("g", "t") == {}


def test_the_last_member_leaves_nothing_behind(group: Group) -> None:
    group.join("a", 0)
    group.do(group_metadata.leave, "a", 0)
    assert group.metadata.read(lambda txn: group_metadata.raw(txn, "g")) is None
    assert group.metadata.read(lambda txn: group_metadata.names(txn, 0)) == []


def test_members_who_died_are_not_counted(group: Group) -> None:
    group.join("a", 0)
    with pytest.raises(GroupHasMembers):
        group.do(group_metadata.check_nobody, LEASE - 1)
    group.do(group_metadata.check_nobody, LEASE)
    assert group.metadata.read(lambda txn: group_metadata.describe(txn, "g", LEASE)).members == ()
    assert group.metadata.read(lambda txn: group_metadata.names(txn, LEASE)) == []


def test_a_topic_that_was_deleted_has_no_owner(group: Group, broker: EmbeddedBroker) -> None:
    group.join("a", 0)
    broker.delete_topic("t")
    group.do(group_metadata.beat, "a", 1)
    assert group.owned("a") == set()
    broker.create_topic("t", 2)
    group.do(group_metadata.beat, "a", 2)
    assert group.owned("a") == {0, 1}


def test_a_roster_survives_its_way_through_bytes(group: Group) -> None:
    group.join("a", 0)
    group.join("b", 0)
    assert GroupMetadata.of_bytes(group.roster.to_bytes()) == group.roster


STEPS = st.lists(st.tuples(st.sampled_from(["join", "leave", "release"]), st.sampled_from("abcd")), max_size=25)


@given(STEPS, st.integers(1, 7))
def test_after_any_membership_changes_each_partition_has_one_owner_and_the_load_is_even(
    steps: list[tuple[str, str]], partitions: int
) -> None:
    found = GroupMetadata()
    for step, member in steps:
        before = dict(found.claims)
        if step == "join":
            found.members[member] = Enrolled("here", ("t",), LEASE)
        elif step == "leave":
            found.remove([member])
        if step == "release":
            found.release(member, [place for place in found.owned_by(member) if place not in found.meant_for(member)])
        else:
            found.replan({"t": partitions})
        found.settle()
        taken = [place for place, claim in found.claims.items() if place in before and before[place] != claim]
        assert all(before[place].member == member and step != "join" for place in taken)
        assert all(claim.member in found.members for claim in found.claims.values())
    for member in list(found.members):
        found.release(member, [place for place in found.owned_by(member) if place not in found.meant_for(member)])
    found.settle()
    shares = [len(found.owned_by(member)) for member in found.members]
    assert sum(shares) == (partitions if found.members else 0)
    assert not shares or max(shares) - min(shares) <= 1


NAMES = st.sampled_from("abcde")
TOPICS = st.dictionaries(st.sampled_from(["orders", "payments", "users"]), st.integers(1, 9), min_size=1)


def places(partitions: dict[str, int]) -> list[tuple[str, int]]:
    return [(topic, number) for topic, count in partitions.items() for number in range(count)]


def test_one_member_gets_everything() -> None:
    assert balance({"a": ["t"]}, {"t": 3}, {}) == {("t", 0): "a", ("t", 1): "a", ("t", 2): "a"}


def test_an_unread_topic_is_left_out() -> None:
    assert balance({"a": ["t"]}, {"t": 1, "u": 1}, {}) == {("t", 0): "a"}
    assert balance({}, {"t": 1}, {}) == {}


def test_each_topic_is_spread_where_members_have_as_much_to_do() -> None:
    plan = balance({"a": ["t", "u"], "b": ["t", "u"]}, {"t": 2, "u": 2}, {})
    assert {(topic, owner) for (topic, _), owner in plan.items()} == {("t", "a"), ("t", "b"), ("u", "a"), ("u", "b")}


def test_a_new_member_takes_no_more_than_its_share() -> None:
    before = balance({"a": ["t"], "b": ["t"]}, {"t": 6}, {})
    after = balance({"a": ["t"], "b": ["t"], "c": ["t"]}, {"t": 6}, before)
    assert sorted(Counter(after.values()).values()) == [2, 2, 2]
    assert sum(before[place] != after[place] for place in before) == 2


def test_what_a_member_leaves_behind_is_all_that_moves() -> None:
    before = balance({"a": ["t"], "b": ["t"], "c": ["t"]}, {"t": 6}, {})
    after = balance({"a": ["t"], "b": ["t"]}, {"t": 6}, {p: owner for p, owner in before.items() if owner != "c"})
    assert all(after[place] == owner for place, owner in before.items() if owner != "c")
    assert sorted(Counter(after.values()).values()) == [3, 3]


@given(
    st.sets(NAMES, min_size=1),
    TOPICS,
    st.dictionaries(st.tuples(st.sampled_from(["orders", "users"]), st.integers(0, 9)), NAMES),
)
def test_members_with_the_same_topics_share_evenly_with_the_fewest_moves(
    names: set[str], partitions: dict[str, int], owners: dict[tuple[str, int], str]
) -> None:
    plan = balance({name: list(partitions) for name in names}, partitions, owners)
    assert set(plan) == set(places(partitions))
    loads = Counter(dict.fromkeys(names, 0))
    loads.update(plan.values())
    assert max(loads.values()) - min(loads.values()) <= 1
    kept = Counter(owner for place, owner in owners.items() if place in plan and owner in names)
    moved = sum(owners.get(place) in names and owners[place] != owner for place, owner in plan.items())
    least, above = divmod(len(plan), len(names))
    shares = sorted(kept.values(), reverse=True)
    surplus = sum(max(count - least - (rank < above), 0) for rank, count in enumerate(shares))
    assert moved == surplus


@given(st.dictionaries(NAMES, st.sets(st.sampled_from(["orders", "users"]), min_size=1)), TOPICS)
def test_partitions_are_assigned_only_to_members_that_subscribe_to_the_topic(
    members: dict[str, set[str]], partitions: dict[str, int]
) -> None:
    plan = balance(members, partitions, {})
    assert all(place[0] in members[owner] for place, owner in plan.items())
    assert set(plan) == {place for place in places(partitions) if any(place[0] in read for read in members.values())}
