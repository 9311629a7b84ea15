"""Joins of two tables by key: both sides keep the result current."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from operators.core.agreement import Sent, check
from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.dsl.table import Table
from potok.errors import TopologyError
from potok.snapshots.table_view import WindowedKey
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.topology.nodes.windows import session, tumbling, tumbling_ms


def random_rows(seed: int, count: int = 40) -> list[Sent]:
    random = Random(seed)
    topics = ["users", "cities"]
    return [
        Sent(random.choice(topics), random.choice("abcd"), random.choice([None, {"n": random.randrange(3)}]), at)
        for at in range(count)
    ]


def all_kinds(left: Table, right: Table) -> None:
    left.join(right, lambda a, b: [a["n"], b["n"]], name="inner").to_stream().to("changes")
    left.left_join(right, name="left")
    left.outer_join(right, lambda k, a, b: {"key": k, "rows": [a, b]}, name="outer")


@pytest.mark.parametrize("value", ["n bigint", None], ids=["typed", "dynamic"])
def test_every_join_kind_agrees_with_a_recomputation(value: Any) -> None:
    def program(builder: StreamsBuilder) -> None:
        all_kinds(builder.table("users", value=value), builder.table("cities", value=value))

    check(program, random_rows(1))


def test_a_table_joined_to_itself() -> None:
    def program(builder: StreamsBuilder) -> None:
        users = builder.table("users")
        users.join(users, lambda a, b: a["n"] * b["n"], name="squares")
        users.join(users.filter(lambda v: v["n"] > 0), lambda a, b: a["n"] + b["n"], name="doubles")

    check(program, [one for one in random_rows(2) if one.topic == "users"])


def test_joins_of_three_and_joins_of_aggregates() -> None:
    def program(builder: StreamsBuilder) -> None:
        users, cities = builder.table("users"), builder.table("cities")
        counts = builder.stream("clicks").group_by_key().count(name="counts")
        both = users.left_join(cities, lambda a, b: [a["n"], b and b["n"]])
        both.left_join(counts, lambda a, b: [*a, b], name="three")
        users.group_by("n").count(name="by_n").outer_join(cities.group_by("n").count(name="cities_by_n"), name="groups")

    clicks = [Sent("clicks", key, 1, at) for at, key in enumerate("abcabbz")]
    rows = random_rows(3, 30)
    Random(4).shuffle(mixed := [*clicks, *rows])
    check(program, mixed)


def test_what_stays_the_same_is_not_emitted() -> None:
    builder = StreamsBuilder("q")
    users, cities = builder.table("users"), builder.table("cities")
    users.join(cities, lambda a, b: a["n"]).to_stream().to("out")
    with InProcess(builder) as driver:
        for topic, n in (("users", 1), ("cities", 1), ("cities", 2), ("users", 1), ("users", True)):
            driver.send(topic, {"n": n}, "k", timestamp=1)
            driver.run()
        assert [row.value for row in driver.read("out")] == [1, True]


def test_the_time_of_a_joined_row_is_that_of_the_later_side() -> None:
    builder = StreamsBuilder("q")
    builder.table("users").left_join(builder.table("cities")).to_stream().to("out")
    with InProcess(builder) as driver:
        for topic, value, at in (("users", 1, 50), ("cities", 1, 20), ("cities", 2, 90), ("cities", None, 70)):
            driver.send(topic, value, "k", timestamp=at)
            driver.run()
        assert [row.timestamp_ms for row in driver.read("out")] == [50, 50, 90, 70]


def test_a_row_whose_joiner_raises_is_deleted_and_set_aside() -> None:
    builder = StreamsBuilder("q")
    left, right = builder.table("l"), builder.table("r")
    left.join(right, lambda a, b: a // b, name="t").to_stream().to("out")
    left.join(right, lambda a, b: "x" * b, value=int, name="typed")
    with InProcess(builder) as driver:
        for topic, value in (("l", 6), ("r", 2), ("r", 0), ("l", 7), ("r", 1)):
            driver.send(topic, value, "k", timestamp=1)
            driver.run()
        assert driver.table("t").all() == {"k": 7}
        assert [row.value for row in driver.read("out")] == [3, None, 7]
        assert [step for step, _ in driver.reasons()] == ["t", "t", "typed", "typed", "typed", "typed"]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("key", [str, None], ids=["typed", "dynamic"])
def test_windows_are_joined_and_stay_windows(shards: int, spread: bool, key: Any) -> None:
    builder = StreamsBuilder("q")
    window = tumbling_ms(10, 0, 20)
    views = builder.stream("views", key=key).group_by_key().windowed_by(window).count(name="v")
    clicks = builder.stream("clicks", key=key).group_by_key().windowed_by(window).sum(name="c")
    rates = views.left_join(clicks, lambda a, b: [a, b], name="rates")
    rates.to_stream().to("out")
    with InProcess(builder, shards=shards, spread=spread) as driver:
        for at in (1, 2, 11):
            for user in ('"a"', '"b"') if key is None else ("a", "b"):
                driver.send("views", 1, user, timestamp=at)
                driver.run()
        driver.send("clicks", 5, '"a"' if key is None else "a", timestamp=3)
        driver.run()
        rows = driver.table("rates")
        assert rows.get("a", at=3) == [2, 5]
        assert rows.all() == {
            WindowedKey("a", 0, 10): [2, 5],
            WindowedKey("a", 10, 20): [1, None],
            WindowedKey("b", 0, 10): [2, None],
            WindowedKey("b", 10, 20): [1, None],
        }
        emitted = len(driver.read("out"))
        driver.advance_to(35)
        assert sorted(key.start_ms for key in rows.all()) == [10, 10]
        assert len(driver.read("out")) == emitted


def test_a_join_survives_a_restart_and_forgets_what_both_sides_deleted() -> None:
    builder = StreamsBuilder("q")
    builder.table("l").join(builder.table("r"), name="t")
    with InProcess(builder) as driver:
        driver.send("l", 1, "k", timestamp=1)
        driver.run()
        driver.restart()
        driver.send("r", 2, "k", timestamp=1)
        driver.run()
        assert driver.table("t").all() == {"k": {"left": 1, "right": 2}}
        for topic in ("l", "r"):
            driver.send(topic, None, "k", timestamp=2)
            driver.run()
        assert driver.table("t").all() == {}


def test_keys_of_two_types_cannot_be_joined() -> None:
    builder = StreamsBuilder("q")
    builder.table("l", key=int).join(builder.table("r"), name="t")
    with pytest.raises(TopologyError, match="the keys of the one are int64, of the other string"):
        builder.build()


def test_a_window_cannot_be_joined_to_a_row_without_one() -> None:
    builder = StreamsBuilder("q")
    windowed = builder.stream("s", key=None).group_by_key().windowed_by(tumbling_ms(10, 0, 10)).count(name="w")
    windowed.join(builder.table("r", key=None), name="t")
    with pytest.raises(TopologyError, match="in windows"):
        builder.build()


def test_a_table_is_joined_to_tables_only() -> None:
    builder = StreamsBuilder("q")
    stream: Any = builder.stream("s")
    with pytest.raises(TopologyError, match="a table is joined to tables"):
        builder.table("t").join(stream)
    with pytest.raises(TopologyError, match="two builders"):
        builder.table("u").join(StreamsBuilder("other").table("t"))


@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_joined_window_is_dropped_when_both_watermarks_have_passed_it(batch_records: int | None) -> None:
    builder = StreamsBuilder("q")
    left = builder.stream("l").group_by_key().windowed_by(tumbling_ms(10, 0, 10)).count(name="left")
    right = builder.stream("r").group_by_key().windowed_by(tumbling_ms(10, 0, 50)).count(name="right")
    left.outer_join(right, lambda a, b: [a, b], name="both").to_stream().to("out")
    with InProcess(builder, shards=1) as driver:
        for topic, at in (("l", 1), ("r", 1), ("l", 500), ("r", 2)):
            driver.send(topic, 1, "k", timestamp=at)
        driver.run(batch_records)
        assert len(driver.table("left")) == 1
        assert driver.table("both").get("k", at=1) == [1, 2]
        driver.send("r", 1, "k", timestamp=59)
        driver.run(batch_records)
        assert driver.table("both").get("k", at=1) == [1, 2]
        driver.send("r", 1, "k", timestamp=60)
        driver.run(batch_records)
        assert driver.table("both").get("k", at=1) is None
        assert None not in [row.value for row in driver.read("out")]
        driver.advance_to(10_000)
        driver.send("l", 1, "k", timestamp=10_000)
        driver.run()
        store = LmdbStore(driver._prepared.directory / "state" / "0", create=False)
        tables = ("both", "both/sides", "both/due")
        assert [len([1 for _, cell in store.scan(table) if cell.new is not None]) for table in tables] == [1, 1, 1]


@pytest.mark.parametrize("kind", ["tumbling(0.010, retention=0.020)", "session(0.005, retention=0.020)"])
def test_joined_windows_do_not_depend_on_the_batches(kind: str) -> None:
    def program(builder: StreamsBuilder) -> None:
        window = eval(kind, {"tumbling": tumbling, "session": session})
        views = builder.stream("views").group_by_key().windowed_by(window).count(name="v")
        clicks = builder.stream("clicks").group_by_key().windowed_by(window).count(name="c")
        both = views.outer_join(clicks, lambda a, b: [a, b], name="both")
        both.join(views, lambda a, b: [*a, b], name="three").to_stream().to("changes")

    random, sent = Random(6), []
    for at in range(0, 120, 2):
        for topic in ("views", "clicks"):
            if random.random() < 0.6:
                sent.append(Sent(topic, random.choice("ab"), 1, max(0, at - random.choice([0, 0, 4]))))
    check(program, sent)


def test_a_dead_letter_of_a_join_is_the_record_that_changed_a_row_and_shows_both() -> None:
    builder = StreamsBuilder("q")
    builder.table("a").join(builder.table("b"), lambda left, right: left // right, name="t")
    with InProcess(builder) as driver:
        driver.send("a", 6, "k", timestamp=1)
        driver.send("b", 3, "k", timestamp=1)
        driver.run()
        driver.send("b", 0, "k", timestamp=2)
        driver.run()
        (letter,) = driver.dead_letters()
        assert (letter.step, letter.topic, letter.partition, letter.offset, letter.value) == ("t", "b", 0, 1, b"0")
        assert letter.error.endswith("left is 6, right 0")
