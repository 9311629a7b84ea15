"""Sagas of steps in a topology: what comes of their events by `sagas.Play`, with the fields of each message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from potok.patterns.sagas.processor import ACTION, CONTROL, SagaProcessor
from potok.topology.nodes import Saga
from tests.oracle.call import UserError
from tests.oracle.processors import NOWHERE, Failure, Sent
from tests.oracle.records import Item
from tests.oracle.saga_handler_steps import SagaHandlers
from tests.oracle.sagas import Happening, Plan, Play, Step
from tests.oracle.tables import SetAside


def saga_steps(node: Saga) -> SagaSteps | SagaHandlers:
    assert isinstance(node.processor, SagaProcessor)
    return SagaSteps(node) if node.processor.definition.handlers is None else SagaHandlers(node)


@dataclass
class _Known:
    """What the events of an instance have reported, and the event that it takes last."""

    item: Item
    data: dict[str, Any] = field(default_factory=dict)


class SagaSteps:
    """The instances of one saga: those that send commands, without functions that make them."""

    def __init__(self, node: Saga) -> None:
        assert isinstance(node.processor, SagaProcessor)
        self.definition = node.processor.definition
        if self.definition.handlers is not None or self.definition.watches:
            raise NotImplementedError("the oracle knows sagas of steps that send commands")
        steps = tuple(
            Step(
                one.name,
                one.group,
                one.undo is not None,
                one.waits_for_undone,
                one.timeout_ms,
                one.retry.times,
                one.retry.delay_ms,
                one.pivot,
            )
            for one in self.definition.steps
        )
        self.play = Play(Plan(steps, self.definition.missing, self.definition.keep_ms))
        self.channels = {name: (number, schema) for number, (name, schema) in enumerate(node.channels)}
        self.known: dict[str, _Known] = {}

    def take(self, item: Item) -> Iterator[Sent | Failure]:
        if item.key is None:
            raise SetAside("no key")
        type_ = item.value["event_type"]
        name, part = self.definition.roles.get(type_, ("", ""))
        what = "start" if part == "start" else f"{name}.{part}"
        if type_ == CONTROL:
            what = item.value[ACTION]
        id_ = json.loads(item.origin.value or b"")["event_id"]
        known = self.known.setdefault(item.key, _Known(item))
        yield from self._pass(item.key, item.at_ms)
        before = self._statuses(item.key)
        fields = self.definition.fields.get(type_, ())
        reported = {name: item.value[name] for name in fields if item.value[name] is not None}
        known.item, data = item, known.data
        known.data = {**data, **reported}
        self.play.happen(Happening(item.at_ms, item.key, what, id_))
        yield from self._made(item.key)
        if self._statuses(item.key) == before:
            known.data = data

    def close(self, stream_time_ms: int) -> Iterator[Sent | Failure]:
        for key in list(self.known):
            yield from self._pass(key, stream_time_ms)

    def _pass(self, key: str, until_ms: int) -> Iterator[Sent | Failure]:
        self.play.wait(key, until_ms)
        known = self.known[key]
        known.item = replace(known.item, position=NOWHERE, headless=True)
        yield from self._made(key)

    def _statuses(self, key: str) -> dict[str, str] | None:
        case = self.play.cases.get(key)
        return None if case is None else dict(case.status)

    def _made(self, key: str) -> Iterator[Sent | Failure]:
        """What has been sent, emitted and refused since it was last asked."""
        known = self.known[key]
        steps = {one.name: one for one in self.definition.steps}
        for _, command, _ in self.play.sent.pop(key, []):
            kind, _, step = command.partition("-")
            message = steps[step].send if kind == "Do" else steps[step].undo
            assert message is not None
            yield self._forwarded("commands", message, known)
        for _, end in self.play.emitted.pop(key, []):
            if end in self.definition.emits:
                yield self._forwarded("emitted", self.definition.emits[end], known)
        for _ in range(self.play.refused.pop(key, 0)):
            yield Failure(known.item, UserError("refused"))

    def _forwarded(self, channel: str, message: Any, known: _Known) -> Sent:
        number, schema = self.channels[channel]
        names = [one.name for one in message.schema.fields]
        given = {"event_type": message.type, **{name: known.data.get(name) for name in names}}
        value = {one.name: given.get(one.name) for one in schema.fields}
        return number, known.item.part(known.item.key, value, number)
