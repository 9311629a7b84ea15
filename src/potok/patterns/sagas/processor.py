"""Run sagas as a processor: instances in stores, timeouts as timers, commands and events as outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from potok.errors import TopologyError
from potok.events.event_type import TYPE_FIELD, EventType, EventTypes, declared_schema_of
from potok.events.read import CAUSE, CORRELATION
from potok.patterns.sagas.definition import Definition
from potok.patterns.sagas.instance import ENDED, STATES, Instance, summary
from potok.patterns.sagas.machine import SagaMachine
from potok.records.schemas.schema import Field, Schema
from potok.topology.processor import Processor, ProcessorContext
from potok.topology.stores import Store, ValueStore

CONTROL = "potok.saga.control"
"""The type of the events by which operators retry, skip and abort."""
ACTION = "potok_action"
COMMANDS, EMITTED = "commands", "emitted"
INSTANCES = "instances"
IDEMPOTENCY_KEY = "idempotency-key"
FORGET = "forget"


class Machine(Protocol):
    """The transitions of one version of a saga."""

    definition: Definition

    def start(self, data: Mapping[str, Any], port: Any, correlation: str, key: str) -> Instance: ...
    def start_with(self, event: str, data: Mapping[str, Any], port: Any, correlation: str, key: str) -> Instance: ...
    def event(self, instance: Instance, event: str, data: Mapping[str, Any], port: Any) -> bool: ...
    def timer(self, instance: Instance, name: str, port: Any) -> None: ...
    def control(self, instance: Instance, action: str, port: Any) -> None: ...


class ContextPort:
    """What a saga does, through the context of the processor."""

    def __init__(self, ctx: ProcessorContext, wall: bool, correlation: str = "") -> None:
        self._ctx, self._clock = ctx, "wall" if wall else "event"
        self._headers = dict(ctx.headers)
        self.at = ctx.timestamp
        self.cause = self._headers.get(CAUSE, b"").decode()
        self.correlation = correlation or self._headers.get(CORRELATION, b"").decode()

    def send(self, message: str, data: Mapping[str, Any], key: str) -> None:
        self._forward(COMMANDS, message, data, key)

    def emit(self, message: str, data: Mapping[str, Any], key: str) -> None:
        self._forward(EMITTED, message, data, key)

    def _forward(self, output: str, message: str, data: Mapping[str, Any], key: str) -> None:
        headers = {IDEMPOTENCY_KEY: key.encode()}
        if self.cause:
            headers[CAUSE] = self.cause.encode()
        if self.correlation:
            headers[CORRELATION] = self.correlation.encode()
        self._ctx.forward({TYPE_FIELD: message, **data}, to=output, headers=headers)

    def schedule(self, name: str, after_ms: int) -> int:
        now = self._ctx.processing_time if self._clock == "wall" else self._ctx.timestamp
        self._ctx.schedule(now + after_ms, name=name, clock=self._clock)  # type: ignore[arg-type]
        return now + after_ms

    def cancel(self, name: str) -> None:
        self._ctx.cancel(name)

    def stuck(self, text: str) -> None:
        self._ctx.report_dead_letter(text)


class SagaProcessor(Processor):
    """The instances of a saga by their key. A running one keeps the version that it began with."""

    def __init__(self, definitions: Mapping[int, Definition]) -> None:
        self._machines: dict[int, Machine] = {version: _machine_of(one) for version, one in definitions.items()}
        self._newest = self._machines[max(self._machines)]
        self._wall = self._newest.definition.clock == "wall"
        self._stores: Mapping[str, Any] = {}

    @property
    def definition(self) -> Definition:
        """The definition that new instances begin with."""
        return self._newest.definition

    def declared(self) -> dict[str, Store]:
        """Return the store of the instances, and one for each state, so that those of a state are found by reading
        only them.
        """
        return {name: ValueStore(readable=True) for name in (INSTANCES, *STATES)}

    def bind(self, stores: Mapping[str, Store]) -> None:
        self._stores = stores

    def process(self, key: Any, value: Any, ctx: ProcessorContext) -> None:
        event = value[TYPE_FIELD]
        instance = self._stores[INSTANCES].get()
        port = ContextPort(ctx, self._wall, "" if instance is None else instance["correlation"])
        if event == CONTROL:
            self._control(instance, value[ACTION], port)
        elif instance is None:
            instance = self._begin(key, event, value, port)
        else:
            machine = self._machine(instance)
            machine.event(instance, event, _data(machine, event, value), port)
        self._keep(instance)

    def on_timer(self, key: Any, at: int, ctx: ProcessorContext) -> None:
        if ctx.timer == FORGET:
            for name in (INSTANCES, *STATES):
                self._stores[name].delete()
            return
        instance = self._stores[INSTANCES].get()
        assert instance is not None, "timers die with their instance"
        self._machine(instance).timer(instance, ctx.timer, ContextPort(ctx, self._wall, instance["correlation"]))
        self._keep(instance)

    def _begin(self, key: Any, event: str, value: Any, port: ContextPort) -> Instance | None:
        machine = self._newest
        definition = machine.definition
        if event in definition.starts:
            return machine.start(_data(machine, event, value), port, port.correlation, str(key))
        if definition.missing == "ignore":
            return None
        if definition.missing == "start" and event in definition.roles:
            return machine.start_with(event, _data(machine, event, value), port, port.correlation, str(key))
        raise ValueError(f'"{event}" is for an instance that does not exist in saga "{definition.name}"')

    def _control(self, instance: Instance | None, action: str, port: ContextPort) -> None:
        if instance is None:
            raise ValueError(f'saga "{self.definition.name}" has no such instance')
        self._machine(instance).control(instance, action, port)

    def _machine(self, instance: Instance) -> Machine:
        version = instance["version"]
        if version not in self._machines:
            if instance["state"] in ENDED:
                return self._newest
            known = ", ".join(map(str, sorted(self._machines)))
            raise ValueError(
                f'the instance began with version {version} of saga "{self.definition.name}"; the program has {known}: '
                f"pass earlier=[...] to builder.saga until no instance of version {version} is running"
            )
        return self._machines[version]

    def _keep(self, instance: Instance | None) -> None:
        if instance is None:
            return
        self._stores[INSTANCES].set(instance)
        for state in STATES:
            if state == instance["state"]:
                self._stores[state].set(summary(instance))
            else:
                self._stores[state].delete()


def _machine_of(definition: Definition) -> Machine:
    return SagaMachine(definition)


def _data(machine: Machine, event: str, value: Any) -> dict[str, Any]:
    """Return the fields of an event that its class declares."""
    return {name: value[name] for name in machine.definition.fields.get(event, ())}


def read_types(definitions: Mapping[int, Definition]) -> EventTypes:
    """Return the types that a saga reads from its topics: the events of all versions, and what operators send."""
    found: dict[str, EventType] = {}
    for one in definitions.values():
        for type_ in one.reads:
            same = found.setdefault(type_.name, type_)
            if same.schema.arrow != type_.schema.arrow:
                hint = "one class of an event serves all versions of a saga"
                raise TopologyError(f'event "{type_.name}" has two classes in saga "{one.name}"', hint=hint)
    by = next(iter(definitions.values())).by
    key = next(field.schema for type_ in found.values() for field in type_.schema.fields if field.name == by)
    fields = [Field(by, key, nullable=False), Field(ACTION, declared_schema_of(str), nullable=False)]
    return EventTypes((*found.values(), EventType(CONTROL, 1, Schema.struct(fields))), selects=True)


def sent_types(
    definitions: Mapping[int, Definition], which: Callable[[Definition], tuple[EventType, ...]]
) -> EventTypes:
    """Return the types of what all versions of a saga send."""
    found: dict[str, EventType] = {}
    for one in definitions.values():
        for type_ in which(one):
            found.setdefault(type_.name, type_)
    return EventTypes(tuple(found.values()))
