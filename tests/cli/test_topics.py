from __future__ import annotations

import pytest


def test_a_new_log_has_no_topics_and_says_how_to_make_one(potok) -> None:
    result = potok("topics", "list")
    assert (result.code, result.out) == (0, "")
    assert "potok topics create" in result.err


def test_a_topic_that_was_created_is_listed(potok) -> None:
    potok("topics", "create", "orders", "--partitions", "3")
    listed = potok("topics", "list").out.splitlines()
    assert listed[0].split()[:3] == ["topic", "partitions", "records"]
    assert listed[1].split()[:3] == ["orders", "3", "0"]


def test_json_gives_one_object_for_each_topic(potok) -> None:
    potok("topics", "create", "b")
    potok("topics", "create", "a", "--partitions", "2")
    listed = potok("topics", "list", "--json").objects
    assert [(topic["topic"], topic["partitions"], topic["records"]) for topic in listed] == [("a", 2, 0), ("b", 1, 0)]


def test_describe_shows_the_partitions_and_how_long_records_are_kept(potok) -> None:
    potok("topics", "create", "orders", "--partitions", "2", "--retention", "7 days", "--segment-bytes", "100000")
    (described,) = potok("topics", "describe", "orders", "--json").objects
    assert described["config"] == {"segment_bytes": 100_000, "retention_ms": 604_800_000, "retention_bytes": None}
    assert [part["partition"] for part in described["partition_offsets"]] == [0, 1]
    assert "7d" in potok("topics", "describe", "orders").out


def test_a_topic_is_not_created_twice_unless_it_is_said_to_be_fine(potok) -> None:
    potok("topics", "create", "orders", "--partitions", "2")
    again = potok("topics", "create", "orders")
    assert again.code == 1
    assert "--if-missing" in again.err
    fine = potok("topics", "create", "orders", "--if-missing")
    assert fine.code == 0
    assert "with 2 partitions" in fine.err


def test_a_retention_that_is_no_duration_is_refused(potok) -> None:
    result = potok("topics", "create", "orders", "--retention", "soon")
    assert result.code == 1
    assert '"soon" is not a duration' in result.err


@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 1, 1), ("", 1, 1), ("y\n", 0, 0)])
def test_delete_asks_first(potok, answer: str, code: int, left: int) -> None:
    potok("topics", "create", "orders")
    assert potok("topics", "delete", "orders", stdin=answer).code == code
    assert len(potok("topics", "list", "--json").objects) == left


def test_delete_does_not_ask_a_script(potok) -> None:
    potok("topics", "create", "orders")
    assert potok("topics", "delete", "orders", "--yes").code == 0
    assert potok("topics", "list", "--json").objects == []
