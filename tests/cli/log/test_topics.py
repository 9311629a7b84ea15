from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from potok.log.broker import TopicDescription
from potok.log.embedded.embedded_broker import EmbeddedBroker


def test_an_empty_log_has_no_topics_and_says_how_to_make_one(potok) -> None:
    potok("topics", "create", "orders")
    potok("topics", "delete", "orders", "--yes")
    result = potok("topics", "list")
    assert (result.code, result.out) == (0, "")
    assert "potok topics create" in result.err


def test_a_topic_that_was_created_is_listed(potok) -> None:
    potok("topics", "create", "orders", "--partitions", "3")
    listed = potok("topics", "list").out.splitlines()
    assert listed[0].split()[:3] == ["topic", "partitions", "records"]
    assert listed[1].split()[:3] == ["orders", "3", "0"]


def test_json_returns_one_object_for_each_topic(potok) -> None:
    potok("topics", "create", "b")
    potok("topics", "create", "a", "--partitions", "2")
    listed = potok("topics", "list", "--json").objects
    assert [(topic["topic"], topic["partitions"], topic["records"]) for topic in listed] == [("a", 2, 0), ("b", 1, 0)]


def test_describe_shows_the_partitions_and_how_long_records_are_kept(potok) -> None:
    potok("topics", "create", "orders", "--partitions", "2", "--retention", "7 days", "--segment-bytes", "100000")
    (described,) = potok("topics", "describe", "orders", "--json").objects
    assert described["config"] == {
        "segment_bytes": 100_000,
        "retention_ms": 604_800_000,
        "retention_bytes": None,
        "cleanup_policy": "delete",
        "delete_retention_ms": 86_400_000,
        "min_compaction_lag_ms": 0,
        "archive": None,
    }
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


def test_a_retention_that_is_not_a_duration_is_refused(potok) -> None:
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


def test_create_and_delete_report_their_effect_as_json(potok) -> None:
    (created,) = potok("topics", "create", "orders", "--partitions", "2", "--json").objects
    assert (created["topic"], created["partitions"], created["created"]) == ("orders", 2, True)
    (again,) = potok("topics", "create", "orders", "--if-missing", "--json").objects
    assert again["created"] is False
    (gone,) = potok("topics", "delete", "orders", "--yes", "--json").objects
    assert gone == {"topic": "orders", "records": 0, "deleted": True}


def test_a_topic_is_created_with_all_that_can_be_said_of_its_old_records(potok, tmp_path: Path) -> None:
    potok(
        *("topics", "create", "users", "--cleanup-policy", "compact,delete", "--retention", "30d"),
        *("--retention-bytes", "1000000", "--delete-retention", "2h", "--min-compaction-lag", "5m", "--archive", "old"),
    )
    (described,) = potok("topics", "describe", "users", "--json").objects
    config = described["config"]
    assert config["cleanup_policy"] == "compact,delete"
    assert (config["retention_ms"], config["retention_bytes"]) == (30 * 86_400_000, 1_000_000)
    assert (config["delete_retention_ms"], config["min_compaction_lag_ms"]) == (7_200_000, 300_000)
    assert config["archive"] == str(tmp_path / "old")
    rendered = potok("topics", "show", "users")
    assert "compact,delete" in rendered.out and "30d, 977 KB" in rendered.out
    assert "old segments are archived in" in rendered.err
    wrong = potok("topics", "create", "x", "--cleanup-policy", "shrink")
    assert (wrong.code, "compact,delete" in wrong.err) == (1, True)


def fill(potok, topic: str, *, policy: str = "compact") -> None:
    potok("topics", "create", topic, "--cleanup-policy", policy)
    for n in range(3):
        Path("lines").write_text(f"a:{n}\nb:{n}\n")
        potok("produce", topic, "lines", "--key-separator", ":")


def test_compact_keeps_the_last_record_of_each_key(potok) -> None:
    fill(potok, "users")
    idle = potok("topics", "compact", "users")
    assert idle.code == 0
    assert "6 records were not compacted" in idle.err and "--seal" in idle.err
    (done,) = potok("topics", "compact", "users", "--seal", "--json").objects
    assert (done["topic"], done["records_before"], done["records_after"]) == ("users", 6, 2)
    kept = [(line["offset"], line["key"], line["value"]) for line in potok("consume", "users", "--json").objects]
    assert kept == [(4, "a", "2"), (5, "b", "2")]
    (described,) = potok("topics", "describe", "users", "--json").objects
    assert (described["records"], described["dirty_ratio"]) == (2, 0.0)
    assert "not compacted" not in potok("topics", "compact", "users", "--seal").err


def test_compact_refuses_a_topic_that_keeps_everything(potok) -> None:
    fill(potok, "orders", policy="delete")
    refused = potok("topics", "compact", "orders")
    assert (refused.code, "--cleanup-policy compact" in refused.err) == (1, True)


def test_archive_moves_old_segments_and_consume_still_finds_them(potok, tmp_path: Path) -> None:
    fill(potok, "orders", policy="delete")
    assert "--seal" in potok("topics", "archive", "orders", "--to", "old").err
    young = potok("topics", "archive", "orders", "--to", "old", "--older-than", "7d", "--seal")
    assert (young.code, young.out) == (0, "")
    (file,) = potok("topics", "archive", "orders", "--to", "old", "--json").objects
    assert (file["base_offset"], file["end_offset"], file["records"]) == (0, 6, 6)
    assert Path(file["path"]).is_relative_to(tmp_path / "old")
    assert len(potok("consume", "orders", "--from-beginning", "--json").objects) == 6
    assert [line["offset"] for line in potok("consume", "orders", "--last", "2", "--json").objects] == [4, 5]
    (described,) = potok("topics", "describe", "orders", "--json").objects
    assert described["partition_offsets"][0]["archived_from"] == 0
    assert "archived from" in potok("topics", "describe", "orders").out
    assert "archived 1 segment" in more(potok, "orders").err


def more(potok, topic: str):
    potok("produce", topic, "lines")
    return potok("topics", "archive", topic, "--to", "old", "--seal")


def test_archive_asks_where_to(potok) -> None:
    fill(potok, "orders", policy="delete")
    refused = potok("topics", "archive", "orders")
    assert (refused.code, "--to DIR" in refused.err) == (1, True)


def test_the_last_records_are_found_across_the_gaps_of_compaction(potok) -> None:
    potok("topics", "create", "users", "--cleanup-policy", "compact")
    Path("lines").write_text("a:first\n" + "b:again\n" * 50 + "c:last\n")
    potok("produce", "users", "lines", "--key-separator", ":")
    potok("topics", "compact", "users", "--seal")
    assert [line["offset"] for line in potok("consume", "users", "--last", "2", "--json").objects] == [50, 51]
    assert [line["offset"] for line in potok("consume", "users", "--last", "3", "--json").objects] == [0, 50, 51]
    assert [line["offset"] for line in potok("consume", "users", "--last", "9", "--json").objects] == [0, 50, 51]


def test_a_number_of_records_that_is_a_bound_says_so(potok, monkeypatch: pytest.MonkeyPatch) -> None:
    potok("topics", "create", "orders")
    plain = EmbeddedBroker.describe_topic

    def bounded(self: EmbeddedBroker, name: str) -> TopicDescription:
        found = plain(self, name)
        return replace(found, partitions=tuple(replace(p, end_offset=1500, exact=False) for p in found.partitions))

    monkeypatch.setattr(EmbeddedBroker, "describe_topic", bounded)
    assert "at most 1,500" in potok("topics", "list").out
    assert potok("topics", "describe", "orders").out.count("at most 1,500") == 2
    (listed,) = potok("topics", "list", "--json").objects
    assert (listed["records"], listed["exact"]) == (1500, False)
    assert "its at most 1,500 records?" in potok("topics", "delete", "orders", stdin="n\n").err
    rendered = potok("sql", "-e", "SHOW TOPICS;")
    assert "the number of records of orders is an upper bound" in rendered.err
