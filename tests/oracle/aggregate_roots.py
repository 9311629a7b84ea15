"""Aggregates and folds: what commands and events make of the objects of the user's classes, one after the other."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from potok.errors import PotokError
from potok.patterns.aggregates.processor import AggregateProcessor
from potok.topology.nodes import AggregateRoot, Fold, Node
from tests.oracle.call import UserError
from tests.oracle.canonical import canonical
from tests.oracle.processors import Failure, Sent
from tests.oracle.records import Item
from tests.oracle.tables import SetAside


@dataclasses.dataclass
class Held:
    """An aggregate: its object, how many events it has had, and its answers by command id, with their times."""

    object: Any
    version: int = 0
    answers: dict[str, tuple[int, dict[str, Any]]] = dataclasses.field(default_factory=dict)
    answered_at: int = -1


class AggregateSteps:
    """The aggregates of one class. Events that they write are not read back."""

    def __init__(self, node: AggregateRoot) -> None:
        assert isinstance(node.processor, AggregateProcessor)
        self.node, self.definition = node, node.processor.definition
        self.processor: Any = node.processor
        self.channels = {name: number for number, (name, _) in enumerate(node.channels)}
        self.keys: dict[Any, Held] = {}

    def take(self, item: Item) -> Iterator[Sent | Failure]:
        if item.key is None:
            raise SetAside("no key")
        held = self.keys.setdefault(item.key, Held(self.definition.cls()))
        if item.position.topic == self.definition.events_topic:
            yield from self.fold(held, item)
        else:
            yield from self.decide(held, item)

    def close(self, stream_time_ms: int) -> Iterator[Sent | Failure]:
        yield from ()

    def rows(self) -> dict[str, Any]:
        kept = {key: held for key, held in self.keys.items() if held.version}
        return {
            canonical(key): {"version": held.version, "state": dataclasses.asdict(held.object)}
            for key, held in kept.items()
        }

    def fold(self, held: Held, item: Item) -> Iterator[Sent | Failure]:
        """An event of another writer, in a plain dictionary."""
        trial = copy.deepcopy(held.object)
        try:
            if self.processor._foreign == "dead_letter":
                raise ValueError("not its own")
            found = json.loads(item.origin.value or b"")
            applied = self.definition.events[found["event_type"]]
            event = made(applied.cls, found["data"])
            getattr(trial, applied.method)(event)
        except Exception as error:  # noqa: BLE001 - whatever the record holds, and whatever the user's code raises
            yield Failure(item, UserError(str(error)))
            return
        held.object, held.version = trial, held.version + 1
        yield from self.folded([event], item)

    def folded(self, events: list[Any], item: Item) -> Iterator[Sent]:
        names = {applied.cls: name for name, applied in self.definition.events.items()}
        if self.processor.forwards:
            for index, event in enumerate(events):
                value = {"event_type": names[type(event)], **dataclasses.asdict(event)}
                yield self.channels["folded"], item.part(item.key, value, index)

    def decide(self, held: Held, item: Item) -> Iterator[Sent]:
        headers = {name: value.decode() for name, value in item.origin.headers}
        id_, now = headers.get("command-id"), max(item.at_ms, held.answered_at)
        known = None if id_ is None else held.answers.get(id_)
        if known is not None and known[0] + self.processor._keep_ms >= now:
            yield self.answer(known[1], item)
            return
        trial, events = copy.deepcopy(held.object), list[Any]()
        status, reason = self.outcome(held, trial, events, item, headers.get("expected-version", "any"))
        if status == "accepted":
            held.object, held.version = trial, held.version + len(events)
            yield from self.folded(events, item)
        answer = {"status": status, "version": held.version, "reason": reason, "aggregate_id": item.key}
        if id_ is not None:
            held.answers[id_], held.answered_at = (now, answer), now
        yield self.answer(answer, item)

    def answer(self, answer: Mapping[str, Any], item: Item) -> Sent:
        return self.channels["results"], item.part(item.key, json.dumps(answer).encode(), 0)

    def outcome(self, held: Held, trial: Any, events: list[Any], item: Item, expected: str) -> tuple[str, str | None]:
        try:
            found = json.loads(item.origin.value or b"")
            declared = self.definition.commands[found["command"]]
            command = made(declared.cls, found.get("data", {}))
            wanted = {"any": True, "none": held.version == 0, "exists": held.version > 0}
            fits = wanted[expected] if expected in wanted else held.version == int(expected)
        except (ValueError, KeyError, TypeError):
            return "invalid", "..."
        if not fits:
            return "wrong_version", "..."
        if any(one.creates for one in self.definition.commands.values()) and declared.creates == (held.version > 0):
            return "rejected", "..."
        try:
            result = getattr(trial, declared.method)(command)
            for event in result if isinstance(result, Iterator | list) else [] if result is None else [result]:
                events.append(event)
                applied = next(one for one in self.definition.events.values() if one.cls is type(event))
                getattr(trial, applied.method)(event)
        except PotokError as error:
            return "rejected", error.message
        except Exception:  # noqa: BLE001 - whatever the user's code raises
            return "failed", "..."
        return "accepted", None


class FoldSteps:
    """One object of the user's class for each key."""

    def __init__(self, node: Fold) -> None:
        self.cls: Any = node.processor._cls  # type: ignore[attr-defined]
        self.keys: dict[Any, Any] = {}

    def take(self, item: Item) -> Iterator[Sent | Failure]:
        if item.key is None:
            raise SetAside("no key")
        trial = copy.deepcopy(self.keys[item.key]) if item.key in self.keys else self.cls()
        try:
            trial.apply(flat(json.loads(item.origin.value or b"null")))
            trial.get_state()
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            yield Failure(item, UserError(str(error)))
            return
        self.keys[item.key] = trial

    def close(self, stream_time_ms: int) -> Iterator[Sent | Failure]:
        yield from ()

    def rows(self) -> dict[str, Any]:
        return {canonical(key): trial.get_state() for key, trial in self.keys.items()}


RootSteps = AggregateSteps | FoldSteps


def root_rows(own: Mapping[Node, Any]) -> dict[str, dict[str, Any]]:
    return {node.name: steps.rows() for node, steps in own.items() if isinstance(steps, RootSteps)}


def root_steps(node: AggregateRoot) -> RootSteps:
    return FoldSteps(node) if isinstance(node, Fold) else AggregateSteps(node)


def made(cls: Any, data: dict[str, Any]) -> Any:
    """An object of a class whose fields are numbers and text."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    kinds = {"int": int, "str": str, "float": (int, float), int: int, str: str, float: (int, float)}
    for name, value in data.items():
        if name in fields and (not isinstance(value, kinds[fields[name].type]) or isinstance(value, bool)):  # type: ignore[index, arg-type]
            raise ValueError(f"{name} is {value!r}")
    return cls(**{name: value for name, value in data.items() if name in fields})


def flat(event: Any) -> dict[str, Any]:
    """A plain dictionary without its envelope."""
    if not isinstance(event, dict):
        raise ValueError("not an event")
    if "event_type" not in event:
        return event
    envelope = {"type": event["event_type"], "timestamp": event.get("timestamp"), "event_id": event.get("event_id")}
    return {**(event.get("data") or {}), **envelope}
