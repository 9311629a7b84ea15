from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from potok.log.embedded.assignor import balance

NAMES = st.sampled_from("abcde")
TOPICS = st.dictionaries(st.sampled_from(["orders", "payments", "users"]), st.integers(1, 9), min_size=1)


def places(partitions: dict[str, int]) -> list[tuple[str, int]]:
    return [(topic, number) for topic, count in partitions.items() for number in range(count)]


def test_one_member_gets_everything() -> None:
    assert balance({"a": ["t"]}, {"t": 3}, {}) == {("t", 0): "a", ("t", 1): "a", ("t", 2): "a"}


def test_a_topic_that_nobody_reads_is_left_out() -> None:
    assert balance({"a": ["t"]}, {"t": 1, "u": 1}, {}) == {("t", 0): "a"}
    assert balance({}, {"t": 1}, {}) == {}


def test_each_topic_is_spread_where_members_have_as_much_to_do() -> None:
    plan = balance({"a": ["t", "u"], "b": ["t", "u"]}, {"t": 2, "u": 2}, {})
    assert {(topic, owner) for (topic, _), owner in plan.items()} == {("t", "a"), ("t", "b"), ("u", "a"), ("u", "b")}


def test_a_member_that_comes_takes_no_more_than_its_share() -> None:
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
def test_a_partition_goes_only_to_a_member_that_reads_its_topic(
    members: dict[str, set[str]], partitions: dict[str, int]
) -> None:
    plan = balance(members, partitions, {})
    assert all(place[0] in members[owner] for place, owner in plan.items())
    assert set(plan) == {place for place in places(partitions) if any(place[0] in read for read in members.values())}
