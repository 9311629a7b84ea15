"""Scenarios of a saga: events, time that passes, actions of operators, and the expected outcome."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import orjson

from potok.clock import now_ms
from potok.dsl.builder import StreamsBuilder
from potok.duration import Duration, to_ms
from potok.errors import TopologyError
from potok.events.event_type import EventType
from potok.patterns.sagas.compile import definition_of
from potok.patterns.sagas.control import action_of
from potok.patterns.sagas.message import message_type
from potok.records.formats.registry import format_named
from potok.records.rows import column_of
from potok.testing.driver import TestDriver

EVENTS, COMMANDS, EMITTED = "scenario-events", "scenario-commands", "scenario-emitted"

Happening = Callable[["_Stage"], None]
_ANY: Any = object()


class SagaScenario:
    """What has happened so far. Each method adds to it; `then` runs all of it through the operator and compares the
    outcome."""

    def __init__(self, saga: Any, events: Sequence[Any]) -> None:
        self._saga, self._definition = saga, definition_of(saga)
        self._key: Any = None
        self._happenings: list[Happening] = []
        self._compared = 0
        self.when(*events)
        self._since_given = len(self._happenings)

    def when(self, *events: Any) -> SagaScenario:
        """Let events happen, one after the other."""
        for event in events:
            type_ = message_type(type(event))
            if type_.name not in self._definition.fields:
                hint = f"its events are {', '.join(self._definition.fields)}"
                raise TopologyError(f'"{type_.name}" is not an event of saga "{self._definition.name}"', hint=hint)
            data = _plain(type_, event)
            self._key = data[self._definition.by] if self._key is None else self._key
            self._happenings.append(lambda stage, type_=type_, data=data: stage.event(type_, data))  # type: ignore[misc]
        return self

    def after(self, duration: Duration) -> SagaScenario:
        """Let time pass: processing time, or event time if the saga has `clock="event"`."""
        passed_ms = to_ms(duration)
        self._happenings.append(lambda stage: stage.wait(passed_ms))
        return self

    def operator(self, action: str) -> SagaScenario:
        """Let an operator act on the instance: `retry`, `skip` or `abort`."""
        self._happenings.append(lambda stage: stage.act(self._key, action))
        return self

    def then(
        self,
        *,
        sent: Sequence[Any] = _ANY,
        emitted: Sequence[Any] = _ANY,
        state: str | None = _ANY,
        dead_letters: int = 0,
    ) -> SagaScenario:
        """Compare the outcome of the events, times and actions since `given` or the last `then`.

        Args:
            sent: The commands, in order.
            emitted: The events of `potok.emit`, in order.
            state: The state of the instance; None if there is none.
            dead_letters: The number of dead letters.
        """
        first = self._compared or (self._since_given if len(self._happenings) > self._since_given else 0)
        with _Stage(self._saga, self._definition.clock == "event") as stage:
            for number, happening in enumerate(self._happenings):
                if number == first:
                    stage.forget()
                happening(stage)
            if first == len(self._happenings):
                stage.forget()
            if sent is not _ANY:
                _compare("sent", stage.read(COMMANDS), sent)
            if emitted is not _ANY:
                _compare("emitted", stage.read(EMITTED), emitted)
            found = stage.state(self._definition.name, self._key)
            if state is not _ANY and found != state:
                raise AssertionError(f"the instance is {found}, expected {state}")
            letters = stage.dead_letters()
            if len(letters) != dead_letters:
                raise AssertionError(f"{len(letters)} dead letters, expected {dead_letters}: {letters}")
        self._compared = len(self._happenings)
        return self


class _Stage:
    """A driver that runs the saga, with its clock."""

    def __init__(self, saga: Any, by_event_time: bool) -> None:
        builder = StreamsBuilder("scenario")
        builder.saga(saga, events=EVENTS, commands=COMMANDS, emits=EMITTED)
        self._driver, self._by_event_time = TestDriver(builder), by_event_time
        definition = definition_of(saga)
        self._name, self._by = definition.name, definition.by
        self._now_ms, self._waited_ms, self._number = 0, 0, 0
        self._seen = {COMMANDS: 0, EMITTED: 0, "": 0}

    def __enter__(self) -> _Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.close()

    def event(self, type_: EventType, data: dict[str, Any]) -> None:
        self._number += 1
        envelope = {
            "event_id": f"event-{self._number}",
            "event_type": type_.name,
            "event_version": type_.version,
            "data": data,
        }
        self._driver.send(EVENTS, envelope, timestamp=self._now_ms)
        self._settle()

    def wait(self, passed_ms: int) -> None:
        """Let time pass; by the wall clock, from one timer to the next, as it does for a running program."""
        self._now_ms += passed_ms
        if self._by_event_time:
            self._settle()
            return
        while passed_ms > 0:
            part_ms = min(passed_ms, self._next_timer_in())
            self._driver.wait(timedelta(milliseconds=part_ms))
            self._waited_ms += part_ms
            passed_ms -= part_ms

    def _next_timer_in(self) -> int:
        timers = [
            at for _, one in self._driver.table(f"{self._name}.instances").items() for at in one["timers"].values()
        ]
        return max(1, min(timers, default=1 << 60) - now_ms() - self._waited_ms)

    def act(self, key: Any, action: str) -> None:
        self._number += 1
        key_, value = action_of(self._by, key, action, f"action-{self._number}")
        self._driver.send(f"{self._name}-control", value, key=key_, timestamp=self._now_ms)
        self._settle()

    def _settle(self) -> None:
        if self._by_event_time:
            self._now_ms += 1
            self._driver.run(more_to_come=True)
            self._driver.advance_to(self._now_ms)
        else:
            self._driver.run()

    def forget(self) -> None:
        for topic in (COMMANDS, EMITTED):
            self._seen[topic] += len(self.read(topic))
        self._seen[""] += len(self.dead_letters())

    def read(self, topic: str) -> list[tuple[str, dict[str, Any]]]:
        if not self._driver.broker.has_topic(topic):
            return []
        values = [record.value for record in self._driver.read(topic)[self._seen[topic] :]]
        return [(value["type"], _bare(value["data"])) for value in values]

    def state(self, name: str, key: Any) -> str | None:
        found = self._driver.table(f"{name}.instances").get(key)
        return None if found is None else str(found["state"])

    def dead_letters(self) -> list[str]:
        return [letter.error for letter in self._driver.dead_letters()[self._seen[""] :]]


def _plain(type_: EventType, event: Any) -> dict[str, Any]:
    """Return the data of an event as it is in JSON."""
    made = column_of([dataclasses.asdict(event)], type_.schema)
    if made.errors:
        raise ValueError(f"{event!r:.200} does not fit its class: {made.errors[0]}")
    encoded = format_named("json").encode(made.column, type_.schema)
    return dict(orjson.loads(encoded.values[0].as_py()))


def _bare(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value is not None}


def _compare(what: str, found: list[tuple[str, dict[str, Any]]], expected: Sequence[Any]) -> None:
    wanted = []
    for message in expected:
        type_ = message_type(type(message))
        wanted.append((type_.name, _bare(_plain(type_, message))))
    if found != wanted:
        raise AssertionError(f"{what}: {_listed(found)}, expected {_listed(wanted)}")


def _listed(messages: list[tuple[str, dict[str, Any]]]) -> str:
    rendered = (
        f"{name}({', '.join(f'{field}={value!r}' for field, value in data.items())})" for name, data in messages
    )
    return f"[{', '.join(rendered)}]"
