from __future__ import annotations

from pathlib import Path

import pytest

from cli.shop import HOUR, fill, write_program
from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.log.open import open_broker
from potok.records.log_record import LogRecord


@pytest.fixture(scope="module")
def data(spark, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("shop")
    fill(directory / "data", write_program(directory / "program"))
    return str(directory / "data")


@pytest.fixture
def letters(potok, data: str):
    return lambda *words: potok("--broker", data, "dead-letters", *words)


def test_dead_letters_are_listed_with_all_details(letters) -> None:
    found = {letter["reason"]: letter for letter in letters("list", "--json").objects}
    assert set(found) == {"decode", "late"}
    decode = found["decode"]
    assert (decode["query"], decode["step"], decode["topic"]) == ("shop", "orders", "orders")
    assert (decode["partition"], decode["offset"], decode["timestamp"]) == (1, 0, 5 * HOUR)
    assert (decode["key"], decode["value"]) == ("k", {"base64": "/wBub3QganNvbg=="})
    assert decode["error"] and decode["set_aside_at_ms"] > 0
    assert found["late"]["step"] == "hourly_totals"


def test_a_list_for_people_counts_the_reasons(letters) -> None:
    result = letters("list")
    assert result.out.splitlines()[0].split()[:3] == ["query", "position", "set"]
    assert "0xff006e6f74206a736f6e" in result.out
    assert "\x1b" not in result.out
    assert result.err.strip() == 'query "shop": 2 unresolved, 2 in total: decode 1, late 1'


@pytest.mark.parametrize(
    ("words", "reasons"),
    [
        (("--reason", "late"), ["late"]),
        (("--step", "orders"), ["decode"]),
        (("--reason", "late", "--step", "orders"), []),
        (("--query", "shop", "--limit", "5"), ["decode", "late"]),
        (("--topic", "orders"), ["decode", "late"]),
        (("--topic", "clicks"), []),
        (("--since", "1h ago"), ["decode", "late"]),
        (("--until", "1h ago"), []),
        (("--since", "1h ago", "--until", "now", "--reason", "late"), ["late"]),
    ],
)
def test_a_list_is_narrowed(letters, words: tuple[str, ...], reasons: list[str]) -> None:
    assert sorted(letter["reason"] for letter in letters("list", *words, "--json").objects) == reasons


@pytest.mark.parametrize("command", ["list", "replay", "purge"])
def test_a_reason_that_does_not_exist_is_refused_with_those_that_do(letters, command: str) -> None:
    refused = letters(command, "--reason", "lte")
    assert refused.code == 1
    assert 'there is no reason "lte"' in refused.err
    assert "decode, timestamp, error, late, no key, encode, refused" in refused.err


def test_one_is_shown_with_its_bytes(letters) -> None:
    place = next(row["position"] for row in letters("list", "--json", "--reason", "decode").objects)
    rendered = dict(line.split(":", 1) for line in letters("show", place).out.splitlines())
    assert rendered["reason"].strip() == "decode"
    assert (rendered["state"].strip(), rendered["replayed"].strip()) == ("open", "never")
    assert rendered["record"].strip() == "orders 1:0"
    assert rendered["time"].strip() == f"1970-01-01 05:00:00 UTC ({5 * HOUR})"
    assert rendered["key"].strip() == "k (1 byte)"
    assert rendered["value"].strip() == "0xff006e6f74206a736f6e (10 bytes)"
    assert letters("show", place.split(":")[1], "--json").objects[0]["reason"] == "decode"


@pytest.mark.parametrize(("words", "code"), [(("99",), 1), (("7:0",), 1), (("x",), 2), (("0", "--query", "no"), 1)])
def test_one_that_is_not_there_is_refused(letters, words: tuple[str, ...], code: int) -> None:
    assert letters("show", *words).code == code


def test_without_queries_there_are_no_dead_letters(potok, tmp_path: Path) -> None:
    open_broker(tmp_path / "data").close()
    result = potok("dead-letters", "list")
    assert (result.code, result.out, result.err.strip()) == (0, "", "no dead letters")


def checking(limit: int) -> StreamsBuilder:
    """A program that sets aside all amounts below the limit."""
    builder = StreamsBuilder("shop")

    def checked(value):
        if value["amount"] < limit:
            raise ValueError("too small")
        return value

    builder.stream("orders").map_values(checked, name="check").to("checked")
    return builder


@pytest.fixture
def play(tmp_path: Path):
    """Runs the program on what is there, and gives the amounts that have passed so far."""

    def go_on(limit: int, *amounts: int) -> list[int]:
        with InProcess(checking(limit), directory=tmp_path / "data") as driver:
            for n in amounts:
                driver.send("orders", {"amount": n}, key=f"k{n}", headers={"trace": b"t"}, timestamp=n)
            driver.run()
            return [record.value["amount"] for record in driver.read("checked")]

    return go_on


@pytest.fixture
def run(potok, play):
    """`potok dead-letters` next to a query that has set aside the second, third and fifth order."""
    play(3, 4, 1, 2, 5, 1)
    return lambda *words, **options: potok("dead-letters", *words, **options)


def test_replayed_records_are_processed_by_the_fixed_program(run, play) -> None:
    planned = run("replay", "--dry-run")
    assert planned.out.split() == ["topic", "partition", "records", "orders", "0", "3"]
    assert 'would append 3 records of 3 dead letters of query "shop"' in planned.err
    assert len(run("list", "--json").objects) == 3

    (done,) = run("replay", "--json").objects
    assert done == {
        "query": "shop",
        "done": True,
        "dead_letters": 3,
        "records": 3,
        "partitions": [{"topic": "orders", "partition": 0, "records": 3}],
        "left": {},
    }
    assert play(0) == [4, 5, 1, 2, 1]
    assert run("list").err.splitlines()[-1] == "no dead letters"
    assert {row["state"] for row in run("list", "--all", "--json").objects} == {"replayed"}
    assert 'nothing to replay for query "shop"' in run("replay").err
    assert len(play(0)) == 5


def test_a_record_that_fails_again_is_a_new_dead_letter_with_a_count(run, play) -> None:
    run("replay")
    play(3)
    run("replay", "--step", "check")
    assert play(2) == [4, 5, 2]
    found = run("list", "--json").objects
    assert [(row["replays"], row["value"]) for row in found] == [(2, '{"amount":1}')] * 2
    assert found[0]["headers"] == {"trace": "t", "potok.replayed": "2"}
    assert "2 times" in run("show", found[0]["position"]).out


def test_one_dead_letter_is_replayed_by_its_position(run) -> None:
    (place,) = [row["position"] for row in run("list", "--json").objects if row["offset"] == 2]
    assert run("replay", place, "--json").objects[0]["records"] == 1
    assert [row["offset"] for row in run("list", "--json").objects] == [1, 4]
    assert run("replay", place, "--json").objects[0]["records"] == 0
    assert run("show", place, "--json").objects[0]["state"] == "replayed"
    assert run("replay", "77").code == 1
    assert run("replay", "x").code == 2
    assert run("replay", "--since", "some day").code == 1


def test_dead_letters_of_internal_steps_are_counted(run, tmp_path: Path) -> None:
    broker = open_broker(tmp_path / "data")
    broker.append("shop-dead-letters", [LogRecord(b"k", b"v", 1, (("potok.topic", b""),))])
    broker.close()
    result = run("replay")
    assert "1 dead letter cannot be replayed: made inside the query" in result.err
    assert len(run("list", "--json").objects) == 1


def test_confirmed_dead_letters_are_purged(run) -> None:
    assert run("purge", "--reason", "error", stdin="n\n").code == 1
    assert "would purge 3 dead letters" in run("purge", "--dry-run").err
    first, *_ = run("list", "--json").objects
    assert "purged 1 dead letter" in run("purge", first["position"], stdin="y\n").err
    assert run("show", first["position"]).code == 1
    assert len(run("list", "--json").objects) == 2
    assert run("purge", "--yes", "--json").objects == [{"query": "shop", "done": True, "dead_letters": 2, "removed": 2}]
    assert run("list", "--all", "--json").objects == []
    assert run("purge", "--json").objects == [{"query": "shop", "done": True, "dead_letters": 0, "removed": 0}]


def test_what_was_replayed_is_purged_with_all(run) -> None:
    run("replay")
    assert run("purge", "--yes", "--json").objects[0]["dead_letters"] == 0
    (purged,) = run("purge", "--all", "--yes", "--json").objects
    assert (purged["dead_letters"], purged["removed"]) == (3, 3)
