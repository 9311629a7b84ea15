"""Advance an instance of a declared saga: steps forwards, compensations backwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from potok.patterns.sagas.definition import Definition, Message, SagaStep
from potok.patterns.sagas.instance import (
    ABORTED,
    ABORTING,
    COMPLETED,
    ENDED,
    RUNNING,
    STUCK,
    Instance,
    Port,
    begin,
    clear_timer,
    note,
    set_timer,
)

UNANSWERED = ("waiting", "timed_out")
"""States of a step whose command may have taken effect."""


class SagaMachine:
    """The transitions of one definition. Each method changes the instance that it is given, and nothing else."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._steps = {step.name: step for step in definition.steps}
        self._last = definition.steps[-1].group

    def start(self, data: Mapping[str, Any], port: Port, correlation: str, key: str) -> Instance:
        """Begin an instance with the data of its first event."""
        instance = begin(self.definition.name, self.definition.version, data, port, correlation)
        instance["key"] = key
        note(instance, port, "started")
        self._enter(instance, port, 0)
        return instance

    def start_with(self, event: str, data: Mapping[str, Any], port: Port, correlation: str, key: str) -> Instance:
        """Begin an instance at the step that an event answers; the steps before it are not part of the instance."""
        name, role = self.definition.roles[event]
        if role not in ("ok", "failed"):
            raise ValueError(f'an instance cannot start with "{event}", which ends a compensation')
        instance = begin(self.definition.name, self.definition.version, data, port, correlation)
        instance["key"] = key
        group = self._steps[name].group
        note(instance, port, "started", name)
        for step in self.definition.steps:
            if step.group < group:
                instance["steps"][step.name] = {"state": "skipped", "attempt": 0}
        instance["group"] = group
        for step in self._group(group):
            instance["steps"][step.name] = {"state": "waiting", "attempt": 1}
            if step.name != name:
                self._command(instance, port, step, 1)
        self.event(instance, event, data, port)
        return instance

    def event(self, instance: Instance, event: str, data: Mapping[str, Any], port: Port) -> bool:
        """Take an event; return whether it changed anything: a duplicate and a straggler do not."""
        if event not in self.definition.roles:
            text = f'"{event}" is not an event of version {self.definition.version} of saga "{self.definition.name}"'
            raise ValueError(text)
        name, role = self.definition.roles[event]
        step = self._steps.get(name)
        if step is None:
            return self._ended_by(instance, role, port)
        known = instance["steps"].get(name)
        if known is None:
            if not self.definition.watches:
                raise ValueError(f'"{event}" answers step "{name}", which has not begun')
            known = instance["steps"][name] = {"state": "waiting", "attempt": 1}
        took = getattr(self, f"_{role}")(instance, step, known, port, data)
        return bool(took)

    def timer(self, instance: Instance, name: str, port: Port) -> None:
        """Take a timer that is due; one that was cancelled does not come here."""
        instance["timers"].pop(name, None)
        kind, _, of = name.partition(":")
        if not of:
            note(instance, port, "timed out")
            self._abort(instance, port, "the saga timed out")
            return
        step, known = self._steps[of], instance["steps"][of]
        if kind == "retry":
            self._command(instance, port, step, known["attempt"] + 1)
        elif kind == "undo_retry":
            self._undo_command(instance, port, step, known["attempt"] + 1)
        elif kind == "undo_timeout":
            note(instance, port, "compensation timed out", of)
            self._undo_again(instance, port, step, known, f'the compensation of step "{of}" timed out')
        else:
            note(instance, port, "timed out", of)
            known["state"] = "timed_out"
            if self._past_pivot(instance):
                self._again(instance, port, step, known, f'step "{of}" timed out')
            else:
                self._abort(instance, port, f'step "{of}" timed out')

    def control(self, instance: Instance, action: str, port: Port) -> None:
        """Do what an operator says: `retry`, `skip` or `abort`."""
        state = instance["state"]
        if state in ENDED:
            raise ValueError(f"the saga is {state}")
        note(instance, port, f"{action} by an operator")
        if action == "abort":
            self._abort_by_operator(instance, port)
            return
        if state != STUCK:
            raise ValueError(f"the saga is {state}; only a stuck one can be told to {action}")
        for name in [name for name, one in instance["steps"].items() if one["state"] in ("stuck", "undo_stuck")]:
            self._resume(instance, port, action, self._steps[name], instance["steps"][name])

    def _resume(self, instance: Instance, port: Port, action: str, step: SagaStep, known: dict[str, Any]) -> None:
        backwards = known["state"] == "undo_stuck"
        instance["state"], instance["reason"] = ABORTING if backwards else RUNNING, None
        known["failures"] = 0
        if action == "retry":
            (self._undo_command if backwards else self._command)(instance, port, step, known["attempt"] + 1)
            return
        known["state"] = "undo_skipped" if backwards else "skipped"
        if backwards:
            self._next_compensation(instance, port)
        else:
            self._advance(instance, port)

    def _abort_by_operator(self, instance: Instance, port: Port) -> None:
        if instance["state"] == RUNNING or (instance["state"] == STUCK and not instance["undo"]):
            self._abort(instance, port, "aborted by an operator")
            return
        # What is still to be compensated is given up.
        for name in instance["undo"]:
            instance["steps"][name]["state"] = "undo_skipped"
            self._clear(instance, port, name)
        instance["undo"] = []
        self._end(instance, port, ABORTED)

    def _ok(
        self, instance: Instance, step: SagaStep, known: dict[str, Any], port: Port, data: Mapping[str, Any]
    ) -> bool:
        if known["state"] not in ("waiting", "retrying", "stuck") or instance["state"] not in (RUNNING, STUCK):
            if known["state"] == "done":
                return False
            note(instance, port, "answered late", step.name)
            return False
        self._clear(instance, port, step.name)
        instance["data"].update(data)
        known["state"] = "done"
        instance["done"].append(step.name)
        note(instance, port, "done", step.name)
        if instance["state"] == STUCK and not self._is_stuck(instance):
            instance["state"], instance["reason"] = RUNNING, None
        if instance["state"] == RUNNING:
            self._advance(instance, port)
        return True

    def _failed(
        self, instance: Instance, step: SagaStep, known: dict[str, Any], port: Port, data: Mapping[str, Any]
    ) -> bool:
        if known["state"] != "waiting" or instance["state"] not in (RUNNING, STUCK):
            if known["state"] == "timed_out" or (known["state"] == "waiting" and instance["state"] == ABORTING):
                note(instance, port, "failed late", step.name)
            return False
        self._clear(instance, port, step.name)
        instance["data"].update(data)
        note(instance, port, "failed", step.name, attempt=known["attempt"])
        self._again(instance, port, step, known, f'step "{step.name}" failed')
        return True

    def _undone(
        self, instance: Instance, step: SagaStep, known: dict[str, Any], port: Port, data: Mapping[str, Any]
    ) -> bool:
        watched = self.definition.watches and known["state"] not in ("undone",)
        if known["state"] not in ("undoing", "undo_retrying", "undo_stuck") and not watched:
            return False
        self._clear(instance, port, step.name)
        known["state"] = "undone"
        note(instance, port, "undone", step.name)
        if watched and instance["state"] == RUNNING:
            self._abort(instance, port, f'step "{step.name}" was compensated')
            return True
        if instance["state"] == STUCK:
            instance["state"], instance["reason"] = ABORTING, None
        if instance["state"] == ABORTING:
            self._next_compensation(instance, port)
        return True

    def _undo_failed(
        self, instance: Instance, step: SagaStep, known: dict[str, Any], port: Port, data: Mapping[str, Any]
    ) -> bool:
        if known["state"] != "undoing":
            return False
        self._clear(instance, port, step.name)
        note(instance, port, "compensation failed", step.name, attempt=known["attempt"])
        self._undo_again(instance, port, step, known, f'the compensation of step "{step.name}" failed')
        return True

    def _ended_by(self, instance: Instance, role: str, port: Port) -> bool:
        """Take the event that ends a saga which others run; one that starts a saga is a duplicate."""
        if role == "start" or instance["state"] in ENDED:
            return False
        for name in list(instance["timers"]):
            clear_timer(instance, port, name)
        self._end(instance, port, role)
        return True

    def _enter(self, instance: Instance, port: Port, group: int) -> None:
        instance["group"] = group
        for step in self._group(group):
            if step.name not in instance["steps"]:
                instance["steps"][step.name] = {"state": "waiting", "attempt": 0}
                self._command(instance, port, step, 1)

    def _advance(self, instance: Instance, port: Port) -> None:
        """Enter the next group when this one is done."""
        while all(
            instance["steps"].get(step.name, {}).get("state") in ("done", "skipped")
            for step in self._group(instance["group"])
        ):
            if instance["group"] == self._last:
                if not self.definition.waits_for_end:
                    self._end(instance, port, COMPLETED)
                return
            self._enter(instance, port, instance["group"] + 1)

    def _command(self, instance: Instance, port: Port, step: SagaStep, attempt: int) -> None:
        known = instance["steps"][step.name]
        known["state"], known["attempt"] = "waiting", attempt
        if step.send is not None:
            port.send(step.send.type, step.send.make(instance["data"]), self._key(instance, step.name, attempt))
            note(instance, port, "sent", step.name, command=step.send.type, attempt=attempt)
        if step.timeout_ms is not None:
            set_timer(instance, port, f"timeout:{step.name}", step.timeout_ms)

    def _again(self, instance: Instance, port: Port, step: SagaStep, known: dict[str, Any], reason: str) -> None:
        """Send a command again if the step has retries left; otherwise abort, or wait for an operator."""
        known["failures"] = known.get("failures", 0) + 1
        if known["failures"] <= step.retry.times:
            known["state"] = "retrying"
            if step.retry.delay_ms:
                set_timer(instance, port, f"retry:{step.name}", step.retry.delay_ms)
            else:
                self._command(instance, port, step, known["attempt"] + 1)
        elif self._past_pivot(instance):
            known["state"] = "stuck"
            self._stuck(instance, port, reason)
        else:
            known["state"] = "failed"
            self._abort(instance, port, reason)

    def _abort(self, instance: Instance, port: Port, reason: str) -> None:
        """Compensate what was done, and what was not answered, in reverse order."""
        instance["state"], instance["reason"] = ABORTING, reason
        note(instance, port, "aborting", reason=reason)
        for name in list(instance["timers"]):
            clear_timer(instance, port, name)
        steps = instance["steps"]
        unanswered = [
            step.name for step in self.definition.steps if steps.get(step.name, {}).get("state") in UNANSWERED
        ]
        if self.definition.watches:
            unanswered = []
        undo = [name for name in [*instance["done"], *unanswered] if steps[name]["state"] != "undone"]
        instance["undo"] = [name for name in undo if self._compensates(self._steps[name])]
        for name, known in steps.items():
            if known["state"] == "retrying":
                known["state"] = "failed"
            if name in instance["undo"]:
                known["failures"] = known["attempt"] = 0
        self._next_compensation(instance, port)

    def _compensates(self, step: SagaStep) -> bool:
        return step.undo is not None or (self.definition.watches and step.waits_for_undone)

    def _next_compensation(self, instance: Instance, port: Port) -> None:
        """Compensate the next step; one at a time if its end is announced by an event."""
        undo = instance["undo"]
        while undo:
            known = instance["steps"][undo[-1]]
            if known["state"] not in ("undone", "undo_skipped"):
                if known["state"] in ("undoing", "undo_retrying"):
                    return
                self._undo_command(instance, port, self._steps[undo[-1]], known["attempt"] + 1)
                if known["state"] == "undoing":
                    return
            undo.pop()
        if not self.definition.waits_for_end:
            self._end(instance, port, ABORTED)

    def _undo_command(self, instance: Instance, port: Port, step: SagaStep, attempt: int) -> None:
        known = instance["steps"][step.name]
        known["attempt"] = attempt
        if step.undo is not None:
            key = self._key(instance, f"{step.name}.undo", attempt)
            port.send(step.undo.type, step.undo.make(instance["data"]), key)
            note(instance, port, "compensating", step.name, command=step.undo.type, attempt=attempt)
        known["state"] = "undoing" if step.waits_for_undone else "undone"
        if step.waits_for_undone and step.timeout_ms is not None:
            set_timer(instance, port, f"undo_timeout:{step.name}", step.timeout_ms)

    def _undo_again(self, instance: Instance, port: Port, step: SagaStep, known: dict[str, Any], reason: str) -> None:
        known["failures"] = known.get("failures", 0) + 1
        if known["failures"] <= step.retry.times:
            known["state"] = "undo_retrying"
            if step.retry.delay_ms:
                set_timer(instance, port, f"undo_retry:{step.name}", step.retry.delay_ms)
            else:
                self._undo_command(instance, port, step, known["attempt"] + 1)
        else:
            known["state"] = "undo_stuck"
            self._stuck(instance, port, reason)

    def _stuck(self, instance: Instance, port: Port, reason: str) -> None:
        instance["state"], instance["reason"] = STUCK, reason
        note(instance, port, "stuck", reason=reason)
        self._emit(instance, port, STUCK)
        port.stuck(f'saga "{self.definition.name}" is stuck: {reason}')

    def _end(self, instance: Instance, port: Port, state: str) -> None:
        instance["state"] = state
        note(instance, port, state)
        self._emit(instance, port, state)
        if self.definition.keep_ms is not None:
            port.schedule("forget", self.definition.keep_ms)

    def _emit(self, instance: Instance, port: Port, state: str) -> None:
        message: Message | None = self.definition.emits.get(state)
        if message is not None:
            port.emit(message.type, message.make(instance["data"]), self._key(instance, state, 1))

    def _key(self, instance: Instance, step: str, attempt: int) -> str:
        return f"{self.definition.name}/{instance['key']}/{step}/{attempt}"

    def _group(self, group: int) -> list[SagaStep]:
        return [step for step in self.definition.steps if step.group == group]

    def _past_pivot(self, instance: Instance) -> bool:
        return any(self._steps[name].pivot for name in instance["done"])

    def _is_stuck(self, instance: Instance) -> bool:
        return any(one["state"] == "stuck" for one in instance["steps"].values())

    def _clear(self, instance: Instance, port: Port, step: str) -> None:
        for kind in ("timeout", "retry", "undo_timeout", "undo_retry"):
            clear_timer(instance, port, f"{kind}:{step}")
