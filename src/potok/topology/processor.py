"""Processors: the user's own steps, with state, timers and several outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, NoReturn, Protocol

from potok.duration import Duration
from potok.errors import Location, TopologyError
from potok.expressions.function import ON_TIMER, PROCESSOR, Function
from potok.topology.stores import Store

TimerClock = Literal["event", "wall"]


class Position(NamedTuple):
    """The position of a record."""

    topic: str
    partition: int
    offset: int


class ProcessorContext(Protocol):
    """What a processor can read and do while it processes a record or a timer.

    `timestamp` is the event time of the record, or the time of the timer; `stream_time` that of the record's
    partition; `processing_time` the start of the batch; `timer` the name of the timer. All times are in
    milliseconds.
    """

    timestamp: int
    stream_time: int
    processing_time: int
    timer: str

    @property
    def position(self) -> Position | None:
        """The position of the record; None for a timer or a change of a table."""

    @property
    def source(self) -> str:
        """The topic that the record was read from; "" if there is none."""

    @property
    def headers(self) -> tuple[tuple[str, bytes], ...]:
        """The headers of the record: pairs of name and value."""

    def forward(
        self,
        value: Any,
        key: Any = None,
        timestamp: int | None = None,
        to: str | None = None,
        headers: Mapping[str, bytes] | None = None,
    ) -> None:
        """Emit a copy of a value.

        Args:
            value: The value; later changes to it do not affect the copy.
            key: Another key; the current one if left out.
            timestamp: Another event time, in milliseconds.
            to: The name of an output; the main one if left out.
            headers: Headers instead of those of the record; what a timer emits has none of its own.
        """

    def report_dead_letter(self, error: str) -> None:
        """Write the record, or the timer, to the dead letters, and keep everything that the call stored and sent."""

    def schedule(
        self, at: int | None = None, *, after: Duration | None = None, name: str = "", clock: TimerClock = "event"
    ) -> None:
        """Schedule a call of `on_timer` for this key. Scheduling the same time and name again has no effect.

        Args:
            at: The time of the timer, in milliseconds.
            after: How long after `timestamp`, or, by the wall clock, after `processing_time`.
            name: Available in `on_timer` as `ctx.timer`.
            clock: `event` or `wall`.
        """

    def cancel(self, name: str = "") -> None:
        """Remove the timers of this key with a name."""

    def store(self, name: str) -> Any:
        """Return a store by its name."""


class Processor:
    """A user-defined step. Its stores are attributes of the class; no other state survives a batch.

    >>> class Jumps(Processor):
    ...     last = value_store()
    ...
    ...     def process(self, key, value, ctx):
    ...         if self.last.get() is not None and value["price"] > 2 * self.last.get():
    ...             ctx.forward(value)
    ...         self.last.set(value["price"])
    """

    def process(self, key: Any, value: Any, ctx: ProcessorContext) -> Iterable[Any] | None:
        """Process one record. The items of a returned list, or yielded values, go to the main output."""
        raise NotImplementedError

    def on_timer(self, key: Any, at: int, ctx: ProcessorContext) -> Iterable[Any] | None:
        """Process a timer that is due."""
        raise NotImplementedError

    @property
    def has_timers(self) -> bool:
        return type(self).on_timer is not Processor.on_timer

    def declared(self) -> dict[str, Store]:
        """Return the stores, by name."""
        found: dict[str, Store] = {}
        for kind in reversed(type(self).__mro__):
            found |= {name: store for name, store in vars(kind).items() if isinstance(store, Store)}
        return found | {name: store for name, store in vars(self).items() if isinstance(store, Store)}

    def bind(self, stores: Mapping[str, Store]) -> None:
        """Replace the declarations by open stores."""
        vars(self).update(stores)

    def functions(self) -> tuple[Function, ...]:
        """Return the methods that are called, with their arguments checked."""
        process = Function.of(self.process, (3,), "write def process(self, key, value, ctx): ...")
        if not self.has_timers:
            return (process,)
        return process, Function.of(self.on_timer, (3,), "write def on_timer(self, key, at, ctx): ...")


class FunctionProcessor(Processor):
    """A function of key, value and context; it reaches its stores by `ctx.store`."""

    def __init__(self, process: Function, on_timer: Function | None, stores: Mapping[str, Store]) -> None:
        self._process, self._on_timer, self._declared = process, on_timer, dict(stores)

    def process(self, key: Any, value: Any, ctx: ProcessorContext) -> Iterable[Any] | None:
        return self._process.callable(key, value, ctx)  # type: ignore[no-any-return]

    def on_timer(self, key: Any, at: int, ctx: ProcessorContext) -> Iterable[Any] | None:
        assert self._on_timer is not None
        return self._on_timer.callable(key, at, ctx)  # type: ignore[no-any-return]

    @property
    def has_timers(self) -> bool:
        return self._on_timer is not None

    def declared(self) -> dict[str, Store]:
        return self._declared

    def bind(self, stores: Mapping[str, Store]) -> None:
        """Do nothing: the context has the stores."""

    def functions(self) -> tuple[Function, ...]:
        return (self._process,) if self._on_timer is None else (self._process, self._on_timer)


def processor_of(
    given: Any, on_timer: Callable[..., Any] | None, stores: Mapping[str, Store] | None, at: Location | None
) -> Processor:
    """Return a processor from its class, an instance, a function that creates one, or a function that is one."""
    made = given
    if inspect.isclass(given) and issubclass(given, Processor):
        made = _instance(given, at)
    elif not isinstance(given, Processor | type) and callable(given):
        function = Function.of(given, (0, 3), PROCESSOR)
        if function.arity == 3:
            timer = None if on_timer is None else Function.of(on_timer, (3,), ON_TIMER)
            return FunctionProcessor(function, timer, _checked_stores(stores or {}, at))
        made = given()
    if not isinstance(made, Processor):
        _refuse(f"{given!r} is not a processor", "write class Detector(potok.Processor): ...", at)
    if on_timer is not None or stores is not None:
        _refuse("on_timer= and stores= are for a function", "declare them in the class of the processor", at)
    if type(made).process is Processor.process:
        _refuse(f"{type(made).__name__} has no process method", "write def process(self, key, value, ctx): ...", at)
    _checked_stores(made.declared(), at)
    return made


def _instance(kind: type, at: Location | None) -> Any:
    try:
        inspect.signature(kind).bind()
    except (TypeError, ValueError):
        _refuse(f"{kind.__name__} cannot be created without arguments", f"pass {kind.__name__}(...) itself", at)
    return kind()


def _checked_stores(stores: Mapping[str, Store], at: Location | None) -> Mapping[str, Store]:
    for name, store in stores.items():
        if not isinstance(store, Store):
            _refuse(f'"{name}" is not a store: {store!r}', 'write stores={"last": value_store()}', at)
        if not name.isidentifier():
            _refuse(f'"{name}" cannot be the name of a store', 'use letters, digits and underscores: "last_seen"', at)
    return stores


def _refuse(message: str, hint: str, at: Location | None) -> NoReturn:
    raise TopologyError(message, hint=hint, at=at)
