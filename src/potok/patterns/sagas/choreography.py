"""Monitor a saga that services run among themselves: its progress follows from their events, and nothing is sent."""

from __future__ import annotations

from potok.patterns.sagas.definition import SagaStep
from potok.patterns.sagas.instance import (
    ABORTED,
    ABORTING,
    COMPLETED,
    ENDED,
    RUNNING,
    STUCK,
    Instance,
    Port,
    add_data,
    clear_timers,
    note,
)
from potok.patterns.sagas.machine import Data, SagaMachine, Step

UNDO = ("done", "undoing", "undo_stuck")
"""States of a step that is to be compensated."""


class ChoreographyMachine(SagaMachine):
    """Steps may be seen in any order, as events of several topics are. A step that is overdue makes the instance
    stuck; the event that it waited for resolves that.
    """

    def _start_at(self, instance: Instance, name: str, role: str, data: Data, port: Port) -> None:
        instance["began"] = False
        self._answer(instance, name, role, data, port)

    def _answer(self, instance: Instance, name: str, role: str, data: Data, port: Port) -> None:
        if role in (COMPLETED, ABORTED):
            self._ended_by(instance, role, data, port)
            return
        if instance["state"] in ENDED:
            note(instance, port, "late", name)
            return
        instance["steps"].setdefault(name, {"state": "waiting", "attempt": 1})
        super()._answer(instance, name, role, data, port)

    def _started_again(self, instance: Instance, data: Data, port: Port) -> None:
        began = instance["began"]
        super()._started_again(instance, data, port)
        if not began and instance["state"] == RUNNING:
            self._enter(instance, port, 0)
            self._advance(instance, port)

    def _ended_by(self, instance: Instance, role: str, data: Data, port: Port) -> None:
        if instance["state"] in ENDED:
            note(instance, port, "late")
            return
        add_data(instance, data)
        clear_timers(instance, port)
        self._end(instance, port, role)

    def _timed_out(self, instance: Instance, port: Port, step: SagaStep, known: Step) -> None:
        known["state"] = "stuck"
        self._stuck(instance, port, f'step "{step.name}" is overdue')

    def _failed(self, instance: Instance, step: SagaStep, known: Step, port: Port, data: Data) -> None:
        """Take the failure of a step at any time: the services decide what follows from it."""
        self._clear(instance, port, step.name)
        add_data(instance, data)
        note(instance, port, "failed", step.name)
        for names in (instance["done"], instance["undo"]):
            if step.name in names:
                names.remove(step.name)
        known["state"] = "failed"
        if instance["state"] == ABORTING:
            self._next_compensation(instance, port)
        else:
            self._abort(instance, port, f'step "{step.name}" failed')

    def _undone(self, instance: Instance, step: SagaStep, known: Step, port: Port, data: Data) -> None:
        """Take the end of a compensation, also of one that began before the failure was seen."""
        self._clear(instance, port, step.name)
        add_data(instance, data)
        known["state"] = "undone"
        note(instance, port, "undone", step.name)
        if instance["state"] in (ABORTING, STUCK) and instance["undo"]:
            overdue = any(one["state"] == "undo_stuck" for one in instance["steps"].values())
            instance["state"] = STUCK if overdue else ABORTING
            if not overdue:
                self._next_compensation(instance, port)
        else:
            self._abort(instance, port, f'step "{step.name}" was compensated')

    def _ok(self, instance: Instance, step: SagaStep, known: Step, port: Port, data: Data) -> None:
        if known["state"] != "waiting" or self._forwards(instance):
            super()._ok(instance, step, known, port, data)
            return
        # It was done before the failure was seen: it is compensated too.
        add_data(instance, data)
        known["state"] = "done"
        instance["done"].append(step.name)
        note(instance, port, "done", step.name)
        if instance["state"] == STUCK:
            instance["undo"] = self._to_compensate(instance)
        else:
            self._abort(instance, port, str(instance["reason"]))

    def _abort(self, instance: Instance, port: Port, reason: str) -> None:
        for known in instance["steps"].values():
            if known["state"] == "stuck":  # overdue, which is not failed
                known["state"] = "waiting"
        super()._abort(instance, port, reason)

    def _advance(self, instance: Instance, port: Port) -> None:
        """Go past the groups that are done; the first event may come after their answers."""
        if instance["began"]:
            super()._advance(instance, port)

    def _to_compensate(self, instance: Instance) -> list[str]:
        states = instance["steps"]
        done = [name for name in instance["done"] if states[name]["state"] in UNDO]
        return [name for name in done if self._steps[name].waits_for_undone]

    def control(self, instance: Instance, action: str, port: Port) -> None:
        """Correct the view: `skip` what is overdue, or `abort` the instance."""
        if action == "retry":
            raise ValueError("a choreography sends nothing; repeat the event, or skip the step")
        super().control(instance, action, port)

    def _abort_by_operator(self, instance: Instance, port: Port) -> None:
        clear_timers(instance, port)
        instance["undo"], instance["reason"] = [], "aborted by an operator"
        self._end(instance, port, ABORTED)

    def _finish(self, instance: Instance, port: Port, state: str) -> None:
        """An event ends the instance if one is declared for this end."""
        if state not in self.definition.ends:
            self._end(instance, port, state)
