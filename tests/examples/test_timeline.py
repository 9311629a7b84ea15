"""The timeline of each follower stays current through follow, unfollow, post and delete."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.testing import TestDriver

EXAMPLE = Path(__file__).parents[2] / "examples" / "timeline.py"


def program() -> StreamsBuilder:
    spec = importlib.util.spec_from_file_location("timeline_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    builder: StreamsBuilder = module.builder
    return builder


class Network:
    """What people do, sent to a query, and remembered in plain dicts."""

    def __init__(self, driver: TestDriver) -> None:
        self.driver = driver
        self.follows: set[tuple[str, str]] = set()
        self.posts: dict[str, dict[str, Any]] = {}

    def follow(self, follower: str, followee: str, on: bool = True) -> None:
        (self.follows.add if on else self.follows.discard)((follower, followee))
        key = {"follower": follower, "followee": followee}
        self.driver.send("follows", {} if on else None, key, timestamp=0)

    def post(self, id_: str, author: str, at: int, text: str = "") -> None:
        self.posts[id_] = {"author": author, "text": text, "posted_at": at}
        self.driver.send("posts", self.posts[id_], id_, timestamp=at)

    def delete(self, id_: str) -> None:
        self.posts.pop(id_, None)
        self.driver.send("posts", None, id_, timestamp=0)

    def timeline(self, follower: str) -> list[str]:
        """The ids of what somebody sees."""
        return [post["id"] for post in self.driver.table("timelines").get(follower, [])]

    def expected(self, follower: str) -> list[str]:
        mine = [
            (-post["posted_at"], id_) for id_, post in self.posts.items() if (follower, post["author"]) in self.follows
        ]
        return [id_ for _, id_ in sorted(mine)]


def day_in_the_life(driver: TestDriver) -> None:
    network = Network(driver)
    network.follow("ann", "bob")
    network.post("p1", "bob", 10)
    network.post("p2", "eve", 20)
    driver.run()
    assert network.timeline("ann") == ["p1"]
    network.follow("ann", "eve")
    network.follow("bob", "eve")
    driver.run()
    assert (network.timeline("ann"), network.timeline("bob")) == (["p2", "p1"], ["p2"])
    network.post("p3", "bob", 30)
    network.delete("p2")
    driver.run()
    assert (network.timeline("ann"), network.timeline("bob")) == (["p3", "p1"], [])
    network.follow("ann", "bob", on=False)
    driver.run()
    assert network.timeline("ann") == []


def test_a_timeline_follows_what_people_do() -> None:
    with InProcess(program(), spread=True) as driver:
        day_in_the_life(driver)


@pytest.mark.spark
def test_a_timeline_follows_what_people_do_on_spark(spark: Any) -> None:
    with TestDriver(program()) as driver:
        day_in_the_life(driver)


@pytest.mark.parametrize("batch", [1, 3, 50])
def test_timelines_are_what_a_query_over_all_would_find(batch: int) -> None:
    random, people = Random(7), "abcd"
    with InProcess(program(), shards=3) as driver:
        network = Network(driver)
        deeds: list[Callable[[], None]] = [
            lambda: network.follow(random.choice(people), random.choice(people), random.random() < 0.7),
            lambda: network.post(f"p{random.randrange(9)}", random.choice(people), random.randrange(100)),
            lambda: network.delete(f"p{random.randrange(9)}"),
        ]
        for number in range(50):
            random.choices(deeds, (3, 3, 1))[0]()
            if number % batch == 0:
                driver.run()
        driver.run()
        for person in people:
            assert network.timeline(person) == network.expected(person)
