"""Events of an aggregate that were written in an older version of their class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import potok
from potok.events import event_type
from potok.patterns.aggregates.messages import read_result
from potok.runtime.operations.shadow import shadow_of
from potok.testing import TestDriver


@dataclass
class Add:
    items: list[str]


@potok.event("carts.added")
@dataclass
class AddedList:
    items: list[str]


@potok.aggregate("carts", events="cart-events")
class OldCart:
    items: list[str] = field(default_factory=list)

    @potok.command
    def add(self, command: Add) -> AddedList:
        return AddedList(command.items)

    @potok.applies
    def added(self, event: AddedList) -> None:
        self.items += event.items


@potok.event("carts.added", version=2)
@dataclass
class Added:
    item: str


@potok.aggregate("carts", events="cart-events")
class Cart:
    items: list[str] = field(default_factory=list)

    @potok.command
    def add(self, command: Add) -> Iterator[Added]:
        for item in command.items:
            yield Added(item)

    @potok.applies
    def added(self, event: Added) -> None:
        self.items.append(event.item)


def program(cls: type) -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("shop")
    builder.aggregate(cls)
    return builder


def send(driver: TestDriver, *items: str, id: str = "") -> None:
    value = {"command": "Add", "data": {"items": items}}
    driver.send("carts-commands", value, "c1", headers={"command-id": id.encode()} if id else {})
    driver.run()


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 2 holds one item: an event of version 1 is split, or dropped if it has no item."""
    monkeypatch.setattr(event_type, "_upcasters", {})

    @potok.upcast("carts.added", from_version=1)
    def from_1(data: dict[str, Any]) -> list[dict[str, Any]] | None:
        return [{"item": item} for item in data["items"]] or None


@pytest.mark.usefixtures("split")
def test_events_that_an_upcast_splits_or_drops_keep_their_versions(tmp_path: Path) -> None:
    foreign = {"event_id": "f", "event_type": "carts.added", "data": {"items": ["d", "e"]}}
    with TestDriver(program(OldCart), directory=tmp_path) as driver:
        for number, items in enumerate((["a", "b"], [], ["c"])):
            send(driver, *items, id=f"k{number}")
        driver.send("cart-events", foreign, "c1")
        driver.run()
        send(driver, "f")
        before = driver.table("carts").get("c1")
    assert before == {"version": 5, "state": {"items": ["a", "b", "c", "d", "e", "f"]}}
    changed = program(Cart)
    with TestDriver(changed, directory=tmp_path) as driver:
        history = [(one.version, one.event.item) for one in driver.aggregate(Cart).history("c1")]
        assert history == [(1, "a"), (1, "b"), (3, "c"), (4, "d"), (4, "e"), (5, "f")]
        found = [driver.aggregate(Cart).get("c1", as_of=version) for version in (1, 2, 4)]
        assert found == [Cart(["a", "b"]), Cart(["a", "b"]), Cart(["a", "b", "c", "d", "e"])]
        shadow = TestDriver(shadow_of(changed.build()), directory=tmp_path)
        shadow.run(batch_records=1)
        rebuilt, letters = shadow.table("carts").get("c1"), shadow.dead_letters()
        shadow.leave()
        assert (rebuilt, letters) == (before, [])
        send(driver, "g", "h", id="k9")
        assert driver.table("carts").get("c1")["version"] == 7


@pytest.mark.usefixtures("split")
def test_foreign_events_of_older_versions_are_upcast_before_they_are_folded() -> None:
    with TestDriver(program(Cart)) as driver:
        for number, items in enumerate((["a", "b"], [])):
            driver.send(
                "cart-events", {"event_id": f"{number}", "event_type": "carts.added", "data": {"items": items}}, "c1"
            )
        newer = {"event_id": "9", "event_type": "carts.added", "event_version": "3.0", "data": {"item": "x"}}
        driver.send("cart-events", newer, "c1")
        driver.run()
        assert driver.table("carts").get("c1") == {"version": 2, "state": {"items": ["a", "b"]}}
        (letter,) = driver.dead_letters()
        assert 'event type "carts.added" has version 3, but the program knows only up to 2' in letter.error


def test_a_class_of_the_program_itself_has_no_default_that_it_does_not_declare() -> None:
    """Classes of a script, or of a function, are sent to the workers by value."""

    @dataclass
    class Open:
        owner: str

    @potok.event("local.opened")
    @dataclass
    class Opened:
        owner: str

    @potok.aggregate("locals", events="local-events")
    class Local:
        owner: str = ""

        @potok.command
        def open(self, command: Open) -> Opened:
            return Opened(command.owner)

        @potok.applies
        def opened(self, event: Opened) -> None:
            self.owner = event.owner

    with TestDriver(program(Local)) as driver:
        driver.send("locals-commands", {"command": "Open", "data": {}}, "a")
        driver.send("local-events", {"event_id": "1", "event_type": "local.opened", "data": {}}, "b")
        driver.run()
        (answer,) = [read_result(one.raw_value or b"") for one in driver.read("locals-results")]
        assert (answer.status, answer.reason) == ("invalid", "data of Open: Object missing required field `owner`")
        assert ["missing required field" in letter.error for letter in driver.dead_letters()] == [True]
        assert driver.table("locals").all() == {}
    program(Local)
