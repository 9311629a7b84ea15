"""Call the handlers of a saga class, with the state of its instance as attributes."""

from __future__ import annotations

import copy
from typing import Any

from potok.patterns.sagas.definition import Definition
from potok.patterns.sagas.instance import (
    ABORTED,
    ABORTING,
    COMPLETED,
    ENDED,
    FORGET,
    RUNNING,
    STUCK,
    Instance,
    Port,
    clear_timer,
    clear_timers,
    is_duplicate,
    new_instance,
    note,
    set_timer,
)
from potok.patterns.sagas.message import fields_of
from potok.patterns.sagas.saga import Actions, Saga
from potok.state.codec import dump_state, load_state


class HandlerMachine:
    """The instances of a class of handlers. `steps` of an instance is empty; its `data` is the state of the class."""

    def __init__(self, definition: Definition) -> None:
        assert definition.handlers is not None
        self.definition, self._handlers = definition, definition.handlers
        self._sends = {type_.name: type_ for type_ in definition.sends}
        self._emits = {type_.name: type_ for type_ in definition.emitted}

    def start(self, event: str, data: Any, port: Port, key: str) -> Instance | None:
        """Begin an instance with an event; return None if the definition ignores an event without an instance."""
        known, missing = event in self._handlers.events, self.definition.missing
        if event not in self.definition.starts and (missing != "start" or not known):
            if missing == "ignore" and known:
                return None
            raise ValueError(f'"{event}" is for an instance that does not exist in saga "{self.definition.name}"')
        instance = new_instance(self.definition.name, self.definition.version, key, {}, port)
        note(instance, port, "started")
        self._call(instance, port, self._handlers.events[event], data)
        return instance

    def event(self, instance: Instance, event: str, data: Any, port: Port) -> None:
        if event not in self._handlers.events:
            text = f'"{event}" is not an event of version {self.definition.version} of saga "{self.definition.name}"'
            raise ValueError(text)
        if is_duplicate(instance, port):
            return
        if instance["state"] in ENDED or event in self.definition.starts:
            note(instance, port, "late" if instance["state"] in ENDED else "exists already")
            return
        handler = self._handlers.events[event]
        note(instance, port, "event", handler)
        self._call(instance, port, handler, data)

    def timer(self, instance: Instance, name: str, port: Port) -> None:
        instance["timers"].pop(name, None)
        handler = self._handlers.timers.get(name)
        note(instance, port, "timer", handler or "", timer=name)
        before, mark = copy.deepcopy(instance), port.mark()
        try:
            if handler is None:
                raise ValueError(f'there is no handler of timer "{name}"')
            self._call(instance, port, handler)
        except Exception as error:  # noqa: BLE001 - the user's handler may raise anything
            port.revert(mark)
            instance.clear()
            instance.update(before)
            if instance["state"] != STUCK:
                instance["resumes"] = instance["state"]
            instance["failed_timers"] = [*instance.get("failed_timers", ()), name]
            reason = f'the handler of timer "{name}" failed: {type(error).__name__}: {error}'[:500]
            instance["state"], instance["reason"] = STUCK, reason
            note(instance, port, "stuck", reason=reason)
            port.report(f'saga "{self.definition.name}" is stuck: {reason}')

    def control(self, instance: Instance, action: str, port: Port) -> None:
        """Call the handlers of failed timers again (`retry`), leave them out (`skip`), or end the instance."""
        if is_duplicate(instance, port):
            return
        state = instance["state"]
        if state in ENDED:
            raise ValueError(f"the saga is {state}")
        if action != "abort" and state != STUCK:
            raise ValueError(f"the saga is {state}; only a stuck saga accepts {action}")
        note(instance, port, f"{action} by an operator")
        failed = instance.pop("failed_timers", [])
        if action == "abort":
            self._call(instance, port, "on_abort")
            if instance["state"] not in ENDED:
                self._end(instance, port, ABORTED, "aborted by an operator")
            return
        instance["state"], instance["reason"] = instance.pop("resumes", RUNNING), None
        for name in failed if action == "retry" else ():
            if instance["state"] not in ENDED:
                self.timer(instance, name, port)

    def _call(self, instance: Instance, port: Port, handler: str, *given: Any) -> None:
        saga = self._opened(instance, port, handler)
        getattr(saga, handler)(*given)
        found = {name: value for name, value in vars(saga).items() if not name.startswith("_")}
        # State that cannot be stored is an error of this call, and not of the whole batch.
        instance["data"] = load_state(dump_state(found))

    def _opened(self, instance: Instance, port: Port, handler: str) -> Saga:
        saga: Saga = object.__new__(self._handlers.cls)
        vars(saga).update(copy.deepcopy(self._handlers.defaults) | copy.deepcopy(instance["data"]))

        def end(state: str, reason: str | None) -> None:
            if instance["state"] in ENDED:
                raise ValueError(f"the saga is {instance['state']}")
            if state == ABORTING:
                instance["state"], instance["reason"] = state, reason
                note(instance, port, ABORTING, reason=reason)
            else:
                self._end(instance, port, state, reason)

        def number() -> str:
            sent = instance.setdefault("sent", {})
            sent[handler] = sent.get(handler, 0) + 1
            return f"{self.definition.name}/{instance['key']}/{handler}/{sent[handler]}"

        def send(message: Any) -> None:
            name, data = fields_of(message, self._sends)
            port.send(name, data, number())
            note(instance, port, "sent", handler, command=name)

        def emit(message: Any) -> None:
            name, data = fields_of(message, self._emits)
            port.emit(name, data, number())
            note(instance, port, "emitted", handler, emitted=name)

        def timer(name: str, after_ms: int) -> None:
            if name not in self._handlers.timers:
                known = ", ".join(self._handlers.timers) or "none"
                raise ValueError(f'no method is marked @potok.on_timer("{name}"); there are: {known}')
            if instance["state"] in ENDED:
                raise ValueError(f"the saga is {instance['state']}: it has no timers")
            set_timer(instance, port, name, after_ms)

        saga._actions = Actions(
            instance["key"], port.at, instance["state"], send, emit, timer,
            lambda name: clear_timer(instance, port, name), end,
        )  # fmt: skip
        return saga

    def _end(self, instance: Instance, port: Port, state: str, reason: str | None) -> None:
        clear_timers(instance, port)
        instance["state"], instance["reason"] = state, reason if state != COMPLETED else None
        note(instance, port, state, **({"reason": reason} if reason else {}))
        if self.definition.keep_ms is not None:
            port.schedule(FORGET, max(1, self.definition.keep_ms))
