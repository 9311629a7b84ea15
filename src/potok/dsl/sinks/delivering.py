"""Shared by all methods that deliver outside the log: check the guarantee, name the step, add the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import Handle
from potok.duration import Duration, to_ms
from potok.errors import Location, TopologyError
from potok.sinks.guarantee import Atomicity, Guarantee, GuaranteeName, is_by_task
from potok.sinks.sink_spec import SinkSpec
from potok.sinks.typed_rows import Mode, RowShape
from potok.topology.nodes import Deliver, Node


class UnnamedSink(TopologyError):
    """Two sinks whose derived names depend on their order in the program."""

    def __init__(self, derived: str, at: Location | None) -> None:
        super().__init__(
            f'a sink needs a name here: "{derived}" would depend on the order of the lines',
            hint='a sink identifies its batches by its name: pass one, for example name="orders_to_shop"',
            at=at,
        )


def guarantee_of(given: str, at: Location | None) -> Guarantee:
    try:
        return Guarantee.of(given)
    except TopologyError as error:
        error.at = error.at or at
        raise


def by_task_of(atomic: Atomicity, at: Location | None) -> bool:
    """Return whether tasks publish output themselves."""
    try:
        return is_by_task(atomic)
    except TopologyError as error:
        error.at = error.at or at
        raise


class Delivering(Handle):
    """A handle whose records can leave the log."""

    def _deliver(self, target: SinkSpec, destination: str, guarantee: GuaranteeName, name: str | None) -> None:
        at = calling_location()
        promised = guarantee_of(guarantee, at)
        derived = f"{self._node.name}.{target.verb}.{destination}"
        step = self._graph.step_name(name, derived)
        if not name and promised is Guarantee.EXACTLY_ONCE and self._graph.is_counted(step):
            raise UnnamedSink(derived, at)
        self._graph.add(Deliver(step, at, self._records_for(step), target, promised))

    def _records_for(self, step: str) -> Node:
        """Return the node whose records a step delivers."""
        return self._node


class RowDelivering(Delivering):
    """A handle whose records can become rows of a table in another system."""

    _mode: ClassVar[Mode] = "append"

    def _shape(
        self, mode: Mode | None, key: str | Sequence[str], columns: Mapping[str, str] | None, with_key: bool
    ) -> RowShape:
        return RowShape(mode or self._mode, names_of(key), tuple((columns or {}).items()), with_key)


def names_of(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return one name, or several, as a tuple."""
    return (given,) if isinstance(given, str) else tuple(given)


def given_up(after: Duration | None) -> int | None:
    """Return the time limit of a sink that retries by itself."""
    return None if after is None else to_ms(after)
