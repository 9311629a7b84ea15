"""Run sagas as a processor: instances in stores, timeouts as timers, commands and events as outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from potok.errors import TopologyError
from potok.events.event_type import TYPE_FIELD, EventType, EventTypes, declared_schema_of
from potok.events.read import CAUSE, CORRELATION
from potok.patterns.sagas.choreography import ChoreographyMachine
from potok.patterns.sagas.definition import Definition
from potok.patterns.sagas.handler_machine import HandlerMachine
from potok.patterns.sagas.instance import ENDED, FORGET, STATES, STUCK, Instance, Port, note, summary
from potok.patterns.sagas.machine import SagaMachine
from potok.records.schemas.schema import Field, Schema
from potok.topology.processor import Processor, ProcessorContext
from potok.topology.stores import Store, ValueStore

CONTROL = "potok.saga.control"
"""The type of the events by which operators retry, skip and abort."""
ACTION = "potok_action"
ACTIONS = ("retry", "skip", "abort")
COMMANDS, EMITTED = "commands", "emitted"
INSTANCES = "instances"
IDEMPOTENCY_KEY = "idempotency-key"


class Machine(Protocol):
    """The transitions of one version of a saga."""

    definition: Definition

    def start(self, event: str, data: Any, port: Port, key: str) -> Instance | None: ...
    def event(self, instance: Instance, event: str, data: Any, port: Port) -> None: ...
    def timer(self, instance: Instance, name: str, port: Port) -> None: ...
    def control(self, instance: Instance, action: str, port: Port) -> None: ...


class ContextPort:
    """What a saga does, through the context of the processor, once the call has succeeded."""

    def __init__(self, ctx: ProcessorContext, wall: bool, event: str, at: int, correlation: str | None) -> None:
        self._ctx, self._clock = ctx, "wall" if wall else "event"
        headers = dict(ctx.headers)
        self.at, self.event = at, event
        self.cause = headers.get(CAUSE, b"").decode() if event else ""
        self.correlation = headers.get(CORRELATION, b"").decode() if correlation is None else correlation
        self._effects: list[Callable[[], None]] = []

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
        value = {TYPE_FIELD: message, **data}
        self._effects.append(lambda: self._ctx.forward(value, timestamp=self.at, to=output, headers=headers))

    def schedule(self, name: str, after_ms: int) -> int:
        at = after_ms + (self._ctx.processing_time if self._clock == "wall" else self._ctx.timestamp)
        self._effects.append(lambda: self._ctx.schedule(at, name=name, clock=self._clock))  # type: ignore[arg-type]
        return at

    def cancel(self, name: str) -> None:
        self._effects.append(lambda: self._ctx.cancel(name))

    def report(self, text: str) -> None:
        self._effects.append(lambda: self._ctx.report_dead_letter(text))

    def mark(self) -> int:
        """Return what `revert` needs to forget all that is done from here on."""
        return len(self._effects)

    def revert(self, mark: int) -> None:
        del self._effects[mark:]

    def apply(self) -> None:
        for effect in self._effects:
            effect()


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

    @property
    def definitions(self) -> dict[int, Definition]:
        return {version: machine.definition for version, machine in self._machines.items()}

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
        port = ContextPort(ctx, self._wall, event, ctx.timestamp, instance and instance["correlation"])
        if event == CONTROL:
            self._control(instance, value[ACTION], port)
        elif instance is None:
            instance = self._newest.start(event, _data(self._newest, event, value), port, str(key))
        else:
            machine = self._machine(instance)
            machine.event(instance, event, _data(machine, event, value), port)
        self._keep(instance, port)

    def on_timer(self, key: Any, at: int, ctx: ProcessorContext) -> None:
        instance = self._stores[INSTANCES].get()
        if ctx.timer == FORGET:
            for name in (INSTANCES, *STATES):
                self._stores[name].delete()
            return
        assert instance is not None, "a timer ends with its instance"
        port = ContextPort(ctx, self._wall, "", at, instance["correlation"])
        if instance["version"] in self._machines:
            self._machine(instance).timer(instance, ctx.timer, port)
        else:
            _miss(instance, ctx.timer, port, self._unknown(instance["version"]))
        self._keep(instance, port)

    def _control(self, instance: Instance | None, action: str, port: Port) -> None:
        if instance is None:
            raise ValueError(f'saga "{self.definition.name}" has no such instance')
        if action not in ACTIONS:
            raise ValueError(f'"{action}" is not an action; there are: {", ".join(ACTIONS)}')
        machine = self._machine(instance)
        missed = instance.pop("missed", None)
        if missed is None:
            machine.control(instance, action, port)
            return
        # Its timers came while the program did not have its version.
        instance["state"], instance["reason"] = missed["state"], missed["reason"]
        note(instance, port, f"{action} by an operator")
        if action == "abort":
            machine.control(instance, action, port)
            return
        for name in missed["timers"]:
            if instance["state"] not in ENDED and name in instance["timers"]:
                machine.timer(instance, name, port)

    def _machine(self, instance: Instance) -> Machine:
        version = instance["version"]
        if version not in self._machines:
            if instance["state"] in ENDED:
                return self._newest
            raise ValueError(self._unknown(version))
        return self._machines[version]

    def _unknown(self, version: int) -> str:
        known = ", ".join(map(str, sorted(self._machines)))
        return (
            f'the instance began with version {version} of saga "{self.definition.name}"; the program has {known}: '
            f"pass earlier=[...] to builder.saga until no instance of version {version} is running"
        )

    def _keep(self, instance: Instance | None, port: ContextPort) -> None:
        port.apply()
        if instance is None:
            return
        self._stores[INSTANCES].set(instance)
        for state in STATES:
            if state == instance["state"]:
                self._stores[state].set(summary(instance))
            else:
                self._stores[state].delete()


def _machine_of(definition: Definition) -> Machine:
    if definition.handlers is not None:
        return HandlerMachine(definition)
    return ChoreographyMachine(definition) if definition.watches else SagaMachine(definition)


def _miss(instance: Instance, timer: str, port: Port, why: str) -> None:
    """Keep a timer that no definition can take, for an operator to repeat."""
    missed = instance.setdefault("missed", {"state": instance["state"], "reason": instance["reason"], "timers": []})
    missed["timers"].append(timer)
    instance["state"], instance["reason"] = STUCK, why
    note(instance, port, "stuck", reason=why)
    port.report(why)


def _data(machine: Machine, event: str, value: Any) -> Any:
    """Return the fields of an event that its class declares; handlers take the event itself."""
    definition = machine.definition
    if definition.handlers is not None:
        return value
    return {name: value[name] for name in definition.fields.get(event, ())}


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
