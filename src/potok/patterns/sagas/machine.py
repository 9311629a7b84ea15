"""Advance an instance of a declared saga: steps forwards, compensations backwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from potok.patterns.sagas.definition import Definition, SagaStep
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
    add_data,
    clear_timer,
    clear_timers,
    is_duplicate,
    new_instance,
    note,
    set_timer,
)
from potok.patterns.sagas.message import Message, MessageNotMade

UNANSWERED = ("waiting", "timed_out")
"""States of a step whose command may have taken effect."""

Data = Mapping[str, Any]
Step = dict[str, Any]
"""`state`, `attempt`, and the number of `failures` of a step."""


class SagaMachine:
    """The transitions of one definition. Each method changes the instance that it is given, and nothing else."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._steps = {step.name: step for step in definition.steps}
        self._last = definition.steps[-1].group if definition.steps else 0

    def start(self, event: str, data: Data, port: Port, key: str) -> Instance | None:
        """Begin an instance with an event; return None if the definition ignores an event without an instance."""
        name, role = self.definition.roles.get(event, ("", ""))
        missing = self.definition.missing
        if role != "start" and (missing != "start" or not role):
            if missing == "ignore" and role:
                return None
            raise ValueError(f'"{event}" is for an instance that does not exist in saga "{self.definition.name}"')
        instance = new_instance(self.definition.name, self.definition.version, key, data, port)
        if role == "start":
            note(instance, port, "started")
            self._enter(instance, port, 0)
        else:
            self._start_at(instance, name, role, data, port)
        return instance

    def _start_at(self, instance: Instance, name: str, role: str, data: Data, port: Port) -> None:
        """Begin at the step that an event answers; the steps before it are not part of the instance."""
        if role not in ("ok", "failed"):
            raise ValueError(f'an instance cannot start with "{port.event}", which ends a compensation')
        group = self._steps[name].group
        instance["began"], instance["group"] = False, group
        for step in self.definition.steps:
            if step.group < group:
                instance["steps"][step.name] = {"state": "skipped", "attempt": 0}
        for step in self._group(group):
            instance["steps"][step.name] = {"state": "waiting", "attempt": 1}
            if step.name != name:
                self._command(instance, port, step, 1)
        self._answer(instance, name, role, data, port)

    def event(self, instance: Instance, event: str, data: Data, port: Port) -> None:
        """Take an event. A duplicate changes nothing; a straggler is only noted."""
        if event not in self.definition.roles:
            text = f'"{event}" is not an event of version {self.definition.version} of saga "{self.definition.name}"'
            raise ValueError(text)
        if is_duplicate(instance, port):
            return
        name, role = self.definition.roles[event]
        if role == "start":
            self._started_again(instance, data, port)
        else:
            self._answer(instance, name, role, data, port)

    def _started_again(self, instance: Instance, data: Data, port: Port) -> None:
        """Take the first event of an instance that another event has started; otherwise it is not taken again."""
        if instance["began"]:
            note(instance, port, "exists already")
            return
        note(instance, port, "started")
        instance["began"] = True
        for field, value in data.items():
            if instance["data"].get(field) is None:
                instance["data"][field] = value
        if instance["state"] == STUCK and self._forwards(instance):
            self._resume(instance, port, "retry")

    def _answer(self, instance: Instance, name: str, role: str, data: Data, port: Port) -> None:
        known = instance["steps"].get(name)
        if known is None:
            raise ValueError(f'"{port.event}" answers step "{name}", which has not started')
        take = {"ok": self._ok, "failed": self._failed, "undone": self._undone, "undo_failed": self._undo_failed}[role]
        take(instance, self._steps[name], known, port, data)

    def timer(self, instance: Instance, name: str, port: Port) -> None:
        """Take a timer that is due; one that was cancelled does not come here."""
        instance["timers"].pop(name, None)
        kind, _, of = name.partition(":")
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
            self._timed_out(instance, port, step, known)

    def _timed_out(self, instance: Instance, port: Port, step: SagaStep, known: Step) -> None:
        known["state"], reason = "timed_out", f'step "{step.name}" timed out'
        if self._past_pivot(instance):
            self._again(instance, port, step, known, reason)
        else:
            self._abort(instance, port, reason)

    def control(self, instance: Instance, action: str, port: Port) -> None:
        """Do what an operator says: `retry`, `skip` or `abort`."""
        if is_duplicate(instance, port):
            return
        state = instance["state"]
        if state in ENDED:
            raise ValueError(f"the saga is {state}")
        if action == "abort":
            if self._past_pivot(instance) and not instance["undo"]:
                raise ValueError("the saga is past its pivot and cannot be aborted; retry or skip the step")
            note(instance, port, "abort by an operator")
            self._abort_by_operator(instance, port)
            return
        if state != STUCK:
            raise ValueError(f"the saga is {state}; only a stuck saga accepts {action}")
        note(instance, port, f"{action} by an operator")
        if "ending" in instance:
            self._end(instance, port, instance["ending"], emits=action == "retry")
            return
        self._resume(instance, port, action)

    def _resume(self, instance: Instance, port: Port, action: str) -> None:
        """Retry or skip all steps that the instance is stuck at; it stays stuck if one of them is stuck again."""
        instance["state"], instance["reason"] = RUNNING if self._forwards(instance) else ABORTING, None
        for name, known in instance["steps"].items():
            if known["state"] not in ("stuck", "undo_stuck"):
                continue
            backwards = known["state"] == "undo_stuck"
            known["failures"] = 0
            if action == "retry":
                command = self._undo_command if backwards else self._command
                command(instance, port, self._steps[name], known["attempt"] + 1)
            else:
                known["state"] = "undo_skipped" if backwards else "skipped"
        if instance["state"] == ABORTING:
            self._next_compensation(instance, port)
        elif instance["state"] == RUNNING:
            self._advance(instance, port)

    def _abort_by_operator(self, instance: Instance, port: Port) -> None:
        ending = instance.pop("ending", None)
        if not instance["undo"] and ending != ABORTED:
            self._abort(instance, port, "aborted by an operator")
            return
        # What is still to be compensated is given up.
        for name in instance["undo"]:
            instance["steps"][name]["state"] = "undo_skipped"
        instance["undo"] = []
        clear_timers(instance, port)
        self._end(instance, port, ABORTED, emits=ending is None)

    def _ok(self, instance: Instance, step: SagaStep, known: Step, port: Port, data: Data) -> None:
        if known["state"] not in ("waiting", "retrying", "stuck") or not self._forwards(instance):
            note(instance, port, "answered late", step.name)
            return
        self._clear(instance, port, step.name)
        add_data(instance, data)
        known["state"] = "done"
        instance["done"].append(step.name)
        note(instance, port, "done", step.name)
        if instance["state"] == STUCK and not self._is_stuck(instance):
            instance["state"], instance["reason"] = RUNNING, None
        if instance["state"] == RUNNING:
            self._advance(instance, port)

    def _failed(self, instance: Instance, step: SagaStep, known: Step, port: Port, data: Data) -> None:
        if known["state"] != "waiting" or not self._forwards(instance):
            note(instance, port, "failed late", step.name)
            return
        self._clear(instance, port, step.name)
        add_data(instance, data)
        note(instance, port, "failed", step.name, attempt=known["attempt"])
        self._again(instance, port, step, known, f'step "{step.name}" failed')

    def _undone(self, instance: Instance, step: SagaStep, known: Step, port: Port, data: Data) -> None:
        if known["state"] not in ("undoing", "undo_retrying", "undo_stuck"):
            note(instance, port, "compensated late", step.name)
            return
        self._clear(instance, port, step.name)
        add_data(instance, data)
        known["state"] = "undone"
        note(instance, port, "undone", step.name)
        if instance["state"] == STUCK:
            instance["state"] = ABORTING
        if instance["state"] == ABORTING:
            self._next_compensation(instance, port)

    def _undo_failed(self, instance: Instance, step: SagaStep, known: Step, port: Port, data: Data) -> None:
        if known["state"] != "undoing":
            note(instance, port, "compensation failed late", step.name)
            return
        self._clear(instance, port, step.name)
        add_data(instance, data)
        note(instance, port, "compensation failed", step.name, attempt=known["attempt"])
        self._undo_again(instance, port, step, known, f'the compensation of step "{step.name}" failed')

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
                self._finish(instance, port, COMPLETED)
                return
            self._enter(instance, port, instance["group"] + 1)

    def _command(self, instance: Instance, port: Port, step: SagaStep, attempt: int) -> None:
        known = instance["steps"][step.name]
        known["attempt"] = attempt
        if step.send is not None:
            data = self._made(instance, port, step.send)
            if data is None:
                known["state"] = "stuck"
                return
            port.send(step.send.type, data, self._key(instance, step.name, attempt))
            note(instance, port, "sent", step.name, command=step.send.type, attempt=attempt)
        known["state"] = "waiting"
        if step.timeout_ms is not None:
            set_timer(instance, port, f"timeout:{step.name}", step.timeout_ms)

    def _made(self, instance: Instance, port: Port, message: Message) -> dict[str, Any] | None:
        """Return the fields of a message. If the data of the instance does not make it, the instance is stuck."""
        try:
            return message.make(instance["data"])
        except MessageNotMade as error:
            self._stuck(instance, port, str(error))
            return None

    def _again(self, instance: Instance, port: Port, step: SagaStep, known: Step, reason: str) -> None:
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
        clear_timers(instance, port)
        steps = instance["steps"]
        for known in steps.values():
            if known["state"] in ("retrying", "stuck"):
                known["state"] = "failed"
        instance["undo"] = self._to_compensate(instance)
        for name in instance["undo"]:
            steps[name]["failures"] = steps[name]["attempt"] = 0
        self._next_compensation(instance, port)

    def _to_compensate(self, instance: Instance) -> list[str]:
        steps = instance["steps"]
        unanswered = [
            step.name for step in self.definition.steps if steps.get(step.name, {}).get("state") in UNANSWERED
        ]
        done = [name for name in instance["done"] if steps[name]["state"] == "done"]
        return [name for name in [*done, *unanswered] if self._steps[name].undo is not None]

    def _next_compensation(self, instance: Instance, port: Port) -> None:
        """Compensate the next step; one at a time if its end is announced by an event."""
        undo = instance["undo"]
        while undo:
            known = instance["steps"][undo[-1]]
            if known["state"] not in ("undone", "undo_skipped"):
                if known["state"] in ("undoing", "undo_retrying", "undo_stuck"):
                    return
                self._undo_command(instance, port, self._steps[undo[-1]], known["attempt"] + 1)
                if known["state"] != "undone":
                    return
            undo.pop()
        self._finish(instance, port, ABORTED)

    def _undo_command(self, instance: Instance, port: Port, step: SagaStep, attempt: int) -> None:
        known = instance["steps"][step.name]
        known["attempt"] = attempt
        if step.undo is not None:
            data = self._made(instance, port, step.undo)
            if data is None:
                known["state"] = "undo_stuck"
                return
            port.send(step.undo.type, data, self._key(instance, f"{step.name}.undo", attempt))
            note(instance, port, "compensating", step.name, command=step.undo.type, attempt=attempt)
        if not step.waits_for_undone:
            known["state"] = "undone"
            return
        known["state"] = "undoing"
        if step.timeout_ms is not None:
            set_timer(instance, port, f"undo_timeout:{step.name}", step.timeout_ms)

    def _undo_again(self, instance: Instance, port: Port, step: SagaStep, known: Step, reason: str) -> None:
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
        message = self.definition.emits.get(STUCK)
        if message is not None:
            number = instance["stuck_times"] = instance.get("stuck_times", 0) + 1
            try:
                port.emit(message.type, message.make(instance["data"]), self._key(instance, STUCK, number))
            except MessageNotMade as error:
                reason = f"{reason}; {error}"
        port.report(f'saga "{self.definition.name}" is stuck: {reason}')

    def _finish(self, instance: Instance, port: Port, state: str) -> None:
        """End an instance whose steps are all done, or all compensated."""
        self._end(instance, port, state)

    def _end(self, instance: Instance, port: Port, state: str, *, emits: bool = True) -> None:
        message = self.definition.emits.get(state)
        if emits and message is not None:
            instance["ending"] = state
            data = self._made(instance, port, message)
            if data is None:
                return
            port.emit(message.type, data, self._key(instance, state, 1))
        instance.pop("ending", None)
        instance["state"] = state
        if state == COMPLETED:
            instance["reason"] = None
        note(instance, port, state)
        if self.definition.keep_ms is not None:
            port.schedule(FORGET, max(1, self.definition.keep_ms))

    def _key(self, instance: Instance, step: str, attempt: int) -> str:
        return f"{self.definition.name}/{instance['key']}/{step}/{attempt}"

    def _group(self, group: int) -> list[SagaStep]:
        return [step for step in self.definition.steps if step.group == group]

    def _past_pivot(self, instance: Instance) -> bool:
        return any(self._steps[name].pivot for name in instance["done"])

    def _forwards(self, instance: Instance) -> bool:
        """Whether steps are taken: an instance can also be stuck at a compensation, or at the event of its end."""
        return instance["state"] in (RUNNING, STUCK) and not instance["undo"] and "ending" not in instance

    def _is_stuck(self, instance: Instance) -> bool:
        return any(one["state"] == "stuck" for one in instance["steps"].values())

    def _clear(self, instance: Instance, port: Port, step: str) -> None:
        for kind in ("timeout", "retry", "undo_timeout", "undo_retry"):
            clear_timer(instance, port, f"{kind}:{step}")
