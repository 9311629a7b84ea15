"""Fold the events of a topic with any class that has `apply(event)` and `get_state()`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from potok.errors import Location, TopologyError
from potok.topology.processor import Processor, ProcessorContext
from potok.topology.stores import RowStore, Store, ValueStore

STATE, ATTRIBUTES = "state", "attributes"


class FoldProcessor(Processor):
    """One instance of the class for each key. Its attributes are stored, so they must be data."""

    def __init__(self, cls: type) -> None:
        self._cls = cls
        self._stores: Mapping[str, Any] = {}

    def declared(self) -> dict[str, Store]:
        return {STATE: RowStore(), ATTRIBUTES: ValueStore()}

    def bind(self, stores: Mapping[str, Store]) -> None:
        self._stores = stores

    def process(self, key: Any, value: Any, ctx: ProcessorContext) -> None:
        event = plain_event(value, ctx.headers)
        instance = self._instance()
        instance.apply(event)
        self._stores[STATE].set(instance.get_state())

    def _instance(self) -> Any:
        """Return the instance of the key. Its attributes are those in the store: what changes them is stored."""
        store = self._stores[ATTRIBUTES]
        attributes = store.get()
        if attributes is None:
            store.set({})
            attributes = store.get()
            attributes.update(vars(self._cls()))
        instance: Any = object.__new__(self._cls)
        instance.__dict__ = attributes
        return instance


def plain_event(value: Any, headers: tuple[tuple[str, bytes], ...] = ()) -> dict[str, Any]:
    """Return an event as one flat dict: the fields of its data and, from an envelope, `type`, `timestamp` and
    `event_id`. A value without an envelope is the event itself.
    """
    if not isinstance(value, dict):
        raise ValueError(f"an event is a JSON object, not {value!r:.100}")
    texts = {name: (item or b"").decode("utf-8", "replace") for name, item in headers if name.startswith("ce_")}
    if "ce_type" in texts:
        envelope: Mapping[str, Any] = {name[3:]: text for name, text in texts.items()}
        return _flat(value, envelope.get("type"), envelope.get("time"), envelope.get("id"))
    data = value.get("data")
    if "event_type" in value and (data is None or isinstance(data, dict)):
        return _flat(data, value["event_type"], value.get("timestamp"), value.get("event_id"))
    if "specversion" in value and "type" in value and (data is None or isinstance(data, dict)):
        return _flat(data, value["type"], value.get("time"), value.get("id"))
    return dict(value)


def _flat(data: Mapping[str, Any] | None, type_: Any, timestamp: Any, id_: Any) -> dict[str, Any]:
    return {**(data or {}), "type": type_, "timestamp": timestamp, "event_id": id_}


def check_fold(cls: Any, at: Location | None) -> None:
    """Check that a class can be folded with."""
    hint = "write class Order: with def __init__(self), def apply(self, event) and def get_state(self)"
    if not isinstance(cls, type):
        raise TopologyError(f"{cls!r:.100} is not a class", hint=hint, at=at)
    for name, arguments in (("apply", 2), ("get_state", 1)):
        method = getattr(cls, name, None)
        if not callable(method) or len(inspect.signature(method).parameters) != arguments:
            rendered = f"{name}(self{', event' if arguments == 2 else ''})"
            raise TopologyError(f"{cls.__name__} has no method {rendered}", hint=hint, at=at)
    try:
        instance = cls()
    except TypeError as error:
        raise TopologyError(f"{cls.__name__} cannot be created without arguments: {error}", hint=hint, at=at) from error
    if not hasattr(instance, "__dict__"):
        raise TopologyError(f"{cls.__name__} keeps its attributes in slots", hint="leave out __slots__", at=at)
