"""Scenarios of an aggregate: events that have happened, commands, and the expected outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from potok.dsl.builder import StreamsBuilder
from potok.errors import TopologyError
from potok.events.event_type import event_name
from potok.patterns.aggregates.data import Json, to_json
from potok.patterns.aggregates.definition import definition_of
from potok.patterns.aggregates.messages import ANY, Result, command_record, commands_topic, read_result, results_topic
from potok.snapshots.patterns.aggregates import Aggregates
from potok.testing.driver import TestDriver

KEY = "scenario"

_ANY: Any = object()


class AggregateScenario:
    """The events and commands of one aggregate so far. `then` runs all of them through the operator and compares the
    outcome."""

    def __init__(self, cls: type, events: Sequence[Any]) -> None:
        self._cls, self._definition = cls, definition_of(cls)
        self._events: list[tuple[str, bytes]] = []
        self._commands: list[tuple[Any, str | int]] = []
        self._compared = 0
        for event in events:
            name = event_name(event)
            if name is None or name not in self._definition.events:
                hint = f"its events are {', '.join(self._definition.events)}"
                text = f'{event!r:.200} is not an event of aggregate "{self._definition.name}"'
                raise TopologyError(text, hint=hint)
            self._events.append((name, Json(type(event)).encode(event)))

    def when(self, *commands: Any, expected_version: str | int = ANY) -> AggregateScenario:
        """Send commands, one after the other."""
        known = tuple(one.cls for one in self._definition.commands.values())
        for command in commands:
            if type(command) not in known:
                hint = f"its commands are {', '.join(self._definition.commands)}"
                text = f'{command!r:.200} is not a command of aggregate "{self._definition.name}"'
                raise TopologyError(text, hint=hint)
            self._commands.append((command, expected_version))
        return self

    def then(
        self, *events: Any, rejected: str | None = None, status: str | None = None, state: Any = _ANY
    ) -> AggregateScenario:
        """Compare the outcome of the commands since the last `then`.

        Args:
            events: The events, in order. Without `rejected` or `status`, each command must have been accepted.
            rejected: The reason why the last command was rejected, or a part of it.
            status: The status of the result of the last command: `wrong_version`, `failed`, `invalid`.
            state: The aggregate afterwards; None if it does not exist.
        """
        with TestDriver(self._program()) as driver:
            self._play(driver)
            orders: Aggregates[Any] = driver.aggregate(self._cls)
            answers = self._results(driver)
            before = len(self._events) + sum(len(one.events) for one in answers[: self._compared])
            found = [one.event for one in orders.history(KEY)[before:]]
            _check_results(answers[self._compared :], rejected, status)
            if found != list(events):
                raise AssertionError(f"events: {found}, expected {list(events)}")
            if state is not _ANY and orders.get(KEY) != state:
                raise AssertionError(f"the aggregate is {orders.get(KEY)}, expected {state}")
        self._compared = len(self._commands)
        return self

    def _program(self) -> StreamsBuilder:
        builder = StreamsBuilder("scenario")
        builder.aggregate(self._cls)
        return builder

    def _play(self, driver: TestDriver) -> None:
        definition = self._definition
        for number, (name, data) in enumerate(self._events):
            version = definition.events[name].type.version
            value = b'{"event_id":"%d","event_type":"%s","event_version":%d,"data":%s}'
            driver.send(definition.events_topic, value % (number, name.encode(), version, data), KEY, timestamp=number)
        driver.run()
        rejected = driver.dead_letters()
        if rejected:
            raise AssertionError(f"the events of given() cannot be applied: {rejected[0].error}")
        names = {one.cls: name for name, one in definition.commands.items()}
        for number, (command, expected) in enumerate(self._commands, len(self._events)):
            name = names[type(command)]
            record = command_record(KEY, name, to_json(command), expected_version=expected)
            driver.send(commands_topic(definition.name), record.value, KEY, timestamp=number, headers=record.headers)
        driver.run()

    def _results(self, driver: TestDriver) -> list[Result]:
        return [read_result(one.raw_value or b"") for one in driver.read(results_topic(self._definition.name))]


def _check_results(answers: list[Result], rejected: str | None, status: str | None) -> None:
    wanted = status or ("accepted" if rejected is None else "rejected")
    expected = ["accepted"] * (len(answers) - 1) + [wanted] if answers else []
    for answer, one in zip(answers, expected, strict=True):
        if answer.status != one:
            reason = "" if answer.reason is None else f": {answer.reason}"
            raise AssertionError(f"{answer.command} was {answer.status}{reason}; expected {one}")
    reason = str(answers[-1].reason) if answers else "there was no command"
    if rejected is not None and rejected not in reason:
        raise AssertionError(f"rejected because {reason!r}, expected {rejected!r}")
