"""What sinks outside the log get, and topics beside the commit, when a process dies next to the commit point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.operators.sinks import staged_output
from potok.runtime.output.deliver import Deliveries
from potok.sinks.errors import DeliveryFailed
from potok.sinks.files import batches_in
from potok.snapshots.progress import read_progress

GUARANTEES = ("exactly_once", "at_least_once", "at_most_once")


class Crash(BaseException):
    """The process dies here."""


def crash(*_: Any, **__: Any) -> None:
    raise Crash


class Shop:
    """Orders that go to a topic and to a function under each guarantee, and to files."""

    def __init__(self, directory: Path) -> None:
        self.got: dict[str, list[int]] = {guarantee: [] for guarantee in GUARANTEES}
        self.batches: dict[int, list[int]] = {}
        self.files = directory / "files"
        builder = StreamsBuilder("shop")
        orders = builder.stream("orders", value="n bigint")
        for guarantee in GUARANTEES:
            orders.to(guarantee, guarantee=guarantee)
        for guarantee in GUARANTEES[1:]:
            orders.to_callable(self.taking(guarantee), guarantee=guarantee, name=guarantee)
        orders.to_callable(self.replace, name="exactly_once")
        orders.to_files(self.files, "json")
        self.driver = InProcess(builder, directory=directory / "data", partitions={"orders": 2}, spread=True)
        for n in range(8):
            self.driver.send("orders", {"n": n}, key=str(n), timestamp=n, partition=n % 2)

    def taking(self, guarantee: str) -> Any:
        return lambda records: self.got[guarantee].extend(record.value.n for record in records)

    def replace(self, records: list[Any], batch: int) -> None:
        self.batches[batch] = [record.value.n for record in records]
        self.got["exactly_once"] = [n for batch in sorted(self.batches) for n in self.batches[batch]]

    def in_topic(self, topic: str) -> list[int]:
        return sorted(record.value["n"] for record in self.driver.read(topic))

    def in_files(self) -> list[int]:
        lines = [line for path in sorted(self.files.glob("*.json")) for line in path.read_text().splitlines()]
        return sorted(json.loads(line)["n"] for line in lines)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


EVERYTHING = list(range(8))
FIRST_BATCH = [0, 1, 2, 3]
"""Two of each partition."""


def test_without_failures_every_guarantee_delivers_once_and_in_order(shop: Shop) -> None:
    assert shop.driver.run(4) == 2
    for guarantee in GUARANTEES:
        assert shop.in_topic(guarantee) == EVERYTHING
        assert shop.got[guarantee] == [0, 2, 1, 3, 4, 6, 5, 7], "by partition, and in it by offset"
    assert shop.in_files() == EVERYTHING
    assert list(batches_in(shop.files)) == [1, 2]


def test_a_death_before_the_commit_repeats_what_may_come_twice_and_nothing_else(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(EmbeddedBroker, "publish", crash)
        with pytest.raises(Crash):
            shop.driver.run(4)
    shop.driver.restart()
    shop.driver.run(4)
    for found in (shop.in_topic, lambda guarantee: sorted(shop.got[guarantee])):
        assert found("exactly_once") == EVERYTHING
        assert found("at_least_once") == sorted(EVERYTHING + FIRST_BATCH)
        assert found("at_most_once") == EVERYTHING
    assert shop.in_files() == EVERYTHING


def test_a_death_after_the_commit_loses_what_may_be_lost_and_nothing_else(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Deliveries, "after_commit", crash)
        with pytest.raises(Crash):
            shop.driver.run(4)
    shop.driver.restart()
    shop.driver.run(4)
    for found in (shop.in_topic, lambda guarantee: sorted(shop.got[guarantee])):
        assert found("exactly_once") == EVERYTHING
        assert found("at_least_once") == EVERYTHING
        assert found("at_most_once") == [n for n in EVERYTHING if n not in FIRST_BATCH]
    assert shop.in_files() == EVERYTHING


def test_the_order_does_not_depend_on_how_many_tasks_there_were(tmp_path: Path) -> None:
    seen: list[list[Any]] = []
    for spread in (False, True):
        got: list[Any] = []
        builder = StreamsBuilder("q")
        lines = builder.stream("lines").flat_map(lambda k, v: [(word, 1) for word in v])
        lines.repartition().to_callable(lambda records, batch: got.extend((r.key, r.value) for r in records))
        directory = tmp_path / str(spread)
        with InProcess(builder, directory=directory, partitions={"lines": 3}, shards=3, spread=spread) as driver:
            for n in range(12):
                driver.send("lines", [f"w{n}", f"w{n % 4}", "all"], partition=n % 3)
            driver.run()
        seen.append(got)
    assert len(seen[0]) == 36
    assert seen[0] == seen[1]


def test_a_sink_that_fails_stops_the_query_and_its_batch_comes_again(tmp_path: Path) -> None:
    got: list[Any] = []
    broken = [True]

    def take(records: list[Any], batch: int) -> None:
        if broken:
            raise ConnectionError("the shop is closed")
        got.append((batch, [record.value for record in records]))

    builder = StreamsBuilder("q")
    orders = builder.stream("orders")
    orders.to("copies")
    orders.to_callable(take, name="shop")
    orders.group_by_key().count(name="counts")
    with InProcess(builder, directory=tmp_path) as driver:
        driver.send("orders", 1, key="a")
        with pytest.raises(DeliveryFailed, match=r'sink "shop" .* rejected batch 1: ConnectionError'):
            driver.run()
        assert (driver.read("copies"), driver.table("counts").all()) == ([], {})
        broken.clear()
        driver.restart()
        driver.run()
        assert got == [(1, [1])]
        assert driver.table("counts").all() == {"a": 1}
        assert len(driver.read("copies")) == 1


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_records_refused_by_a_sink_are_dead_letters_with_the_original_bytes(tmp_path: Path, guarantee: str) -> None:
    builder = StreamsBuilder("q")
    orders = builder.stream("orders", value="n bigint").map_values(lambda v: {"twice": v["n"] * 2})
    refusing = lambda records, batch: {1: "no room"} if len(records) > 1 else None
    orders.to_callable(refusing, guarantee=guarantee, name="shop")
    with InProcess(builder, directory=tmp_path) as driver:
        for n in range(3):
            driver.send("orders", {"n": n}, key=str(n))
        driver.run()
        (letter,) = driver.dead_letters()
        assert (letter.step, letter.reason, letter.error, letter.offset) == ("shop", "refused", "no room", 1)
        assert (letter.key, letter.value) == (b"1", b'{"n":1}')
        driver.send("orders", {"n": 3})
        driver.run()
        progress = read_progress(driver.broker, "q")
        assert progress is not None
        assert progress.dead_letters_by_reason == {"refused": 1}


def test_what_cannot_be_prepared_is_set_aside_in_its_task(tmp_path: Path) -> None:
    builder = StreamsBuilder("q")
    orders = builder.stream("orders").map_values(lambda v: object() if v == 1 else v)
    orders.to_files(tmp_path / "out", "json")
    with InProcess(builder, directory=tmp_path / "data") as driver:
        for n in range(3):
            driver.send("orders", n)
        driver.run()
        (letter,) = driver.dead_letters()
        assert (letter.reason, letter.offset) == ("refused", 1)
    (found,) = (tmp_path / "out").glob("*.json")
    assert found.read_text() == "0\n2\n"


def test_large_output_takes_the_way_over_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_output, "INLINE_BYTES", 0)
    got: list[Any] = []
    builder = StreamsBuilder("q")
    builder.stream("orders").to_callable(lambda records, batch: got.extend(r.value for r in records))
    with InProcess(builder, directory=tmp_path, partitions={"orders": 2}, spread=True) as driver:
        for n in range(4):
            driver.send("orders", n, partition=n % 2)
        driver.run()
    assert got == [0, 2, 1, 3]
    assert list(tmp_path.rglob("*.outgoing")) == []


def test_a_changed_guarantee_takes_effect_at_the_next_batch(tmp_path: Path) -> None:
    def program(guarantee: str) -> StreamsBuilder:
        builder = StreamsBuilder("q")
        builder.stream("orders").to("out", guarantee=guarantee)
        return builder

    with InProcess(program("exactly_once"), directory=tmp_path) as driver:
        driver.send("orders", 1)
        driver.run()
        driver.replace(program("at_least_once"))
        driver.send("orders", 2)
        driver.run()
        assert [record.value for record in driver.read("out")] == [1, 2]
