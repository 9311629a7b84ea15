"""Sagas of handlers in a topology: what comes of their events by `HandlerPlay`, with the fields of each message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from types import FunctionType, SimpleNamespace

from potok.patterns.sagas.message import message_type
from potok.patterns.sagas.processor import ACTION, CONTROL, SagaProcessor
from potok.topology.nodes import Saga
from tests.oracle.call import UserError
from tests.oracle.processors import NOWHERE, Failure, Sent
from tests.oracle.records import Item
from tests.oracle.saga_handlers import HandlerPlay, Rules
from tests.oracle.sagas import Happening
from tests.oracle.tables import SetAside


class SagaHandlers:
    """The instances of one saga of handlers."""

    def __init__(self, node: Saga) -> None:
        assert isinstance(node.processor, SagaProcessor)
        definition = node.processor.definition
        handlers = definition.handlers
        assert handlers is not None
        methods = {name: item for name, item in vars(handlers.cls).items() if isinstance(item, FunctionType)}
        rules = Rules(
            definition.name,
            handlers.events,
            handlers.timers,
            frozenset(definition.starts),
            methods,
            handlers.defaults,
            definition.missing,
            definition.keep_ms,
        )
        self.play = HandlerPlay(rules)
        self.channels = {name: (number, schema) for number, (name, schema) in enumerate(node.channels)}
        self.items: dict[str, Item] = {}

    def take(self, item: Item) -> Iterator[Sent | Failure]:
        if item.key is None:
            raise SetAside("no key")
        type_ = item.value["event_type"]
        what = item.value[ACTION] if type_ == CONTROL else type_
        id_ = json.loads(item.origin.value or b"")["event_id"]
        self.items.setdefault(item.key, item)
        yield from self._pass(item.key, item.at_ms)
        self.items[item.key] = item
        self.play.happen(Happening(item.at_ms, item.key, what, id_), SimpleNamespace(**item.value))
        yield from self._made(item.key)

    def close(self, stream_time_ms: int) -> Iterator[Sent | Failure]:
        for key in list(self.items):
            yield from self._pass(key, stream_time_ms)

    def _pass(self, key: str, until_ms: int) -> Iterator[Sent | Failure]:
        self.play.wait(key, until_ms)
        self.items[key] = replace(self.items[key], position=NOWHERE, headless=True)
        yield from self._made(key)

    def _made(self, key: str) -> Iterator[Sent | Failure]:
        """What has been sent, emitted and refused since it was last asked."""
        item = self.items[key]
        for kind, message in self.play.messages:
            number, schema = self.channels["commands" if kind == "sent" else "emitted"]
            given = {"event_type": message_type(type(message)).name, **asdict(message)}
            yield number, item.part(item.key, {one.name: given.get(one.name) for one in schema.fields}, number)
        self.play.messages.clear()
        for _ in range(self.play.refused.pop(key, 0)):
            yield Failure(item, UserError("refused"))
