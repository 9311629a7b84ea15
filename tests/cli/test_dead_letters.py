from __future__ import annotations

from pathlib import Path

import pytest

from cli.shop import HOUR, fill, write_program
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.views.dead_letters import BLOCK, dead_letters_at, latest_dead_letters, read_dead_letters


@pytest.fixture(scope="module")
def data(spark, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("shop")
    fill(directory / "data", write_program(directory / "program"))
    return str(directory / "data")


@pytest.fixture
def letters(potok, data: str):
    return lambda *words: potok("--broker", data, "dead-letters", *words)


def test_letters_are_listed_with_all_that_is_known(letters) -> None:
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
    assert result.out.splitlines()[0].split()[:3] == ["query", "letter", "set"]
    assert "0xff006e6f74206a736f6e" in result.out
    assert "\x1b" not in result.out
    assert result.err.strip() == 'query "shop" has set aside 2 in all: decode 1, late 1'


@pytest.mark.parametrize(
    ("words", "reasons"),
    [
        (("--reason", "late"), ["late"]),
        (("--step", "orders"), ["decode"]),
        (("--reason", "late", "--step", "orders"), []),
        (("--query", "shop", "--limit", "5"), ["decode", "late"]),
    ],
)
def test_a_list_is_narrowed(letters, words: tuple[str, ...], reasons: list[str]) -> None:
    assert sorted(letter["reason"] for letter in letters("list", *words, "--json").objects) == reasons


def test_one_is_shown_with_its_bytes(letters) -> None:
    place = next(row["letter"] for row in letters("list", "--json", "--reason", "decode").objects)
    shown = dict(line.split(":", 1) for line in letters("show", place).out.splitlines())
    assert shown["reason"].strip() == "decode"
    assert shown["record"].strip() == "orders 1:0"
    assert shown["time"].strip() == f"1970-01-01 05:00:00 UTC ({5 * HOUR})"
    assert shown["key"].strip() == "k (1 byte)"
    assert shown["value"].strip() == "0xff006e6f74206a736f6e (10 bytes)"
    assert letters("show", place.split(":")[1], "--json").objects[0]["reason"] == "decode"


@pytest.mark.parametrize(("words", "code"), [(("99",), 1), (("7:0",), 1), (("x",), 2), (("0", "--query", "no"), 1)])
def test_one_that_is_not_there_is_refused(letters, words: tuple[str, ...], code: int) -> None:
    assert letters("show", *words).code == code


def test_without_queries_there_are_no_letters(potok) -> None:
    result = potok("dead-letters", "list")
    assert (result.code, result.out, result.err.strip()) == (0, "", "no dead letters")


def append(directory: Path, count: int, partition: int, reason: str = "late"):
    broker = open_broker(directory)
    broker.create_topic("shop-dead-letters", 2, exist_ok=True)
    headers = (("potok.reason", reason.encode()), ("potok.offset", b"7"))
    broker.append("shop-dead-letters", [LogRecord(None, b"%d" % n, n, headers) for n in range(count)], partition)
    return broker


def test_the_latest_are_read_from_the_end_until_there_are_enough(tmp_path: Path) -> None:
    append(tmp_path, 3, 0, "decode")
    broker = append(tmp_path, 2 * BLOCK + 5, 0)
    last = latest_dead_letters(broker, "shop-dead-letters", 2)
    assert [letter.place for letter in last] == [(0, 2 * BLOCK + 6), (0, 2 * BLOCK + 7)]
    far = latest_dead_letters(broker, "shop-dead-letters", 2, lambda letter: letter.reason == "decode")
    assert [letter.place for letter in far] == [(0, 1), (0, 2)]
    assert len(read_dead_letters(broker, "shop-dead-letters")) == 2 * BLOCK + 8
    broker.close()


def test_partitions_are_told_apart_by_place(tmp_path: Path) -> None:
    append(tmp_path, 2, 0)
    broker = append(tmp_path, 1, 1)
    assert [letter.place for letter in dead_letters_at(broker, "shop-dead-letters", 0)] == [(0, 0), (1, 0)]
    assert [letter.place for letter in dead_letters_at(broker, "shop-dead-letters", 0, 1)] == [(1, 0)]
    assert [letter.place for letter in dead_letters_at(broker, "shop-dead-letters", 1)] == [(0, 1)]
    assert dead_letters_at(broker, "shop-dead-letters", 5) == []
    broker.close()
