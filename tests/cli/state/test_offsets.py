from __future__ import annotations

from pathlib import Path

import pytest

from cli.shop import fill, write_program
from operators.core.in_process import InProcess
from potok import StreamsBuilder

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def shop(spark, tmp_path: Path):
    program = write_program(tmp_path / "program")
    fill(tmp_path / "data", program)
    return program


def test_offsets_are_shown_with_what_is_waiting(potok, shop) -> None:
    rows = potok("offsets", "show", "--json").objects
    assert {row["topic"] for row in rows} == {"orders"}
    assert all(row["query"] == "shop" and row["lag"] == 0 and row["offset"] == row["end_offset"] for row in rows)
    rendered = potok("offsets", "show", "shop")
    assert rendered.out.split("\n")[0].split()[:5] == ["topic", "partition", "offset", "first", "end"]
    assert "0 records are waiting" in rendered.err


def test_a_reset_is_shown_first_and_done_only_when_it_is_meant(potok, shop) -> None:
    before = potok("offsets", "show", "--json").objects
    tried = potok("offsets", "reset", "shop", "--to", "earliest", "--dry-run")
    assert "nothing was changed" in tried.err
    assert "--drop-state" in tried.err
    assert potok("offsets", "show", "--json").objects == before

    refused = potok("offsets", "reset", "shop", "--to", "earliest")
    assert refused.code == 1
    assert "--keep-state" in refused.err

    done = potok("offsets", "reset", "shop", "--to", "earliest", "--drop-state", "--json")
    assert all(row["after"] == 0 and row["done"] for row in done.objects)
    assert sum(row["lag"] for row in potok("offsets", "show", "--json").objects) > 0
    assert potok("tables", "list", "--json").objects[0]["query"] == "shop"


def test_an_invalid_position_is_refused(potok, shop) -> None:
    for words, said in (
        ((), "the new offset is missing"),
        (("--to", "soon"), "is not an offset or a time"),
        (("--to", "earliest", "--topic", "bills"), 'does not read "bills"'),
        (("--to", "earliest", "--partition", "77"), "no partition 77"),
        (("--to", "999999"), "no offset 999999"),
        (("--to", "0", "--drop-state", "--keep-state"), "exclude each other"),
    ):
        outcome = potok("offsets", "reset", "shop", *words)
        assert outcome.code == 1
        assert said in outcome.err


def test_a_replay_runs_in_parallel_with_the_query_and_can_be_removed(potok, shop) -> None:
    first = potok("tables", "get", "order_counts", "anna", "--query", "shop").out
    done = potok("replay", str(shop), "--from", "1970-01-01", "--into", "again-")
    assert done.code == 0, done.err
    assert potok("tables", "get", "order_counts", "anna", "--query", "again-shop").out == first
    assert any(row["topic"].startswith("again-") for row in potok("topics", "list", "--json").objects)
    assert potok("offsets", "reset", "again-shop", "--forget").code == 0
    assert {row["query"] for row in potok("tables", "list", "--json").objects} == {"shop"}


def test_a_topic_recreated_with_fewer_partitions_is_reported(potok, tmp_path: Path) -> None:
    builder = StreamsBuilder("copying")
    builder.stream("texts").to("copies")
    driver = InProcess(builder, directory=tmp_path / "data", partitions={"texts": 2})
    driver._prepared.release()
    driver.broker.delete_topic("texts")
    driver.broker.create_topic("texts", 1)
    rows = potok("offsets", "show", "--json").objects
    assert [(row["partition"], row["end_offset"], row["lag"]) for row in rows] == [(0, 0, 0), (1, None, 0)]
    assert potok("offsets", "show").code == 0
    refused = potok("offsets", "reset", "--to", "earliest")
    assert refused.code == 1
    assert "deleted and created again" in refused.err
    assert "--forget" in refused.err
