"""Aggregates that are not consistent are refused, with the place and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import potok
from potok.errors import TopologyError
from potok.testing import TestDriver


@potok.event("declared.opened")
@dataclass
class Opened:
    owner: str


@potok.event("declared.closed")
@dataclass
class Closed:
    reason: str


@dataclass
class Open:
    owner: str


class NoEvent:
    pass


def event_that_nothing_applies() -> type:
    class Account:
        @potok.command
        def open(self, command: Open) -> Iterator[Opened | Closed]:
            yield Opened(command.owner)

        @potok.applies
        def opened(self, event: Opened) -> None: ...

    return Account


def no_event_at_all() -> type:
    class Account:
        @potok.command
        def open(self, command: Open) -> None: ...

    return Account


def event_applied_twice() -> type:
    class Account:
        @potok.applies
        def opened(self, event: Opened) -> None: ...

        @potok.applies
        def opened_again(self, event: Opened) -> None: ...

    return Account


def command_decided_twice() -> type:
    class Account:
        @potok.command
        def open(self, command: Open) -> Opened:
            return Opened(command.owner)

        @potok.command
        def open_again(self, command: Open) -> Opened:
            return Opened(command.owner)

        @potok.applies
        def opened(self, event: Opened) -> None: ...

    return Account


def command_that_is_no_dataclass() -> type:
    class Account:
        @potok.command
        def open(self, command: NoEvent) -> Opened:
            return Opened("ann")

        @potok.applies
        def opened(self, event: Opened) -> None: ...

    return Account


def event_that_is_not_declared() -> type:
    class Account:
        @potok.applies
        def opened(self, event: Open) -> None: ...

    return Account


def argument_without_a_class() -> type:
    class Account:
        @potok.applies
        def opened(self, event) -> None: ...  # type: ignore[no-untyped-def]

    return Account


def too_many_arguments() -> type:
    class Account:
        @potok.applies
        def opened(self, event: Opened, more: int) -> None: ...

    return Account


def field_without_a_default() -> type:
    class Account:
        owner: str

        @potok.applies
        def opened(self, event: Opened) -> None: ...

    return Account


def field_that_is_no_data() -> type:
    class Account:
        owner: NoEvent = NoEvent()

        @potok.applies
        def opened(self, event: Opened) -> None: ...

    return Account


REFUSED: list[tuple[Callable[[], type], str, str]] = [
    (event_that_nothing_applies, '"open" yields Closed, and no method of Account applies it', "@potok.applies"),
    (no_event_at_all, 'aggregate "accounts" applies no event', "@potok.applies"),
    (event_applied_twice, '"declared.opened" is applied by "opened" and by "opened_again"', "one method"),
    (command_decided_twice, '"Open" is decided by "open" and by "open_again"', "one method"),
    (command_that_is_no_dataclass, "NoEvent is not a command", "@dataclass"),
    (event_that_is_not_declared, "Open is not an event", "@potok.event"),
    (argument_without_a_class, 'does not say which class "event" has', "def paid"),
    (too_many_arguments, 'method "opened" of Account takes 3 arguments', "def paid"),
    (field_without_a_default, 'field "owner" of Account has no default', "owner"),
    (field_that_is_no_data, "the state cannot be stored: NoEvent is not data", "use numbers"),
]


@pytest.mark.parametrize(("make", "message", "hint"), REFUSED, ids=[one.__name__ for one, _, _ in REFUSED])
def test_an_aggregate_that_is_not_consistent_is_refused(make: Callable[[], type], message: str, hint: str) -> None:
    with pytest.raises(TopologyError) as caught:
        potok.StreamsBuilder("bank").aggregate(potok.aggregate("accounts", events="account-events")(make()))
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.at is not None


def test_an_option_that_does_not_exist_is_refused() -> None:
    @potok.aggregate("accounts", events="account-events")
    class Account:
        @potok.applies
        def opened(self, event: Opened) -> None: ...

    given: list[tuple[dict[str, Any], str]] = [
        ({"envelope": "xml"}, 'no envelope "xml"'),
        ({"foreign": "maybe"}, 'foreign= cannot be "maybe"'),
        ({"keep_results": -1}, "keep_results= is negative"),
    ]
    for options, message in given:
        with pytest.raises(TopologyError, match=message) as caught:
            potok.StreamsBuilder("bank").aggregate(Account, **options)
        assert caught.value.hint


@potok.aggregate("accounts", events="account-events")
class Undeclared:
    @potok.command
    def open(self, command: Open):  # type: ignore[no-untyped-def]
        yield Opened(command.owner)
        yield Closed("no method applies this")

    @potok.applies
    def opened(self, event: Opened) -> None: ...


def test_a_command_whose_events_are_not_annotated_fails_when_it_yields_one_that_nothing_applies() -> None:
    builder = potok.StreamsBuilder("bank")
    builder.aggregate(Undeclared)
    with TestDriver(builder) as driver:
        accounts = driver.aggregate(Undeclared)
        sent = accounts.send("ann", Open("ann"))
        driver.run()
        result = accounts.result(sent)
        assert result is not None
        assert (result.status, result.error, result.version) == ("failed", "TypeError", 0)
        assert "declared.opened" in str(result.reason)
        assert driver.read("account-events") == []
