"""The stream of an agent: its records, one after the other, and the methods that can be applied before them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from inspect import isawaitable
from types import GenericAlias
from typing import Any

from potok.faust.messaging.event import Event, current_event
from potok.faust.unsupported import REFUSED, without
from potok.operators.agents.drive import END, Inlet, next_item

Verb = Callable[[AsyncIterator[Any]], AsyncIterator[Any]]


@without(REFUSED["Stream"])
class Stream:
    """The records of an agent. Each method returns a stream, which can be iterated over once.

    >>> @app.agent(orders)
    ... async def large(stream):
    ...     async for order in stream.filter(lambda order: order.amount > 100):
    ...         await alerts.send(value=order)
    """

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        """Support `Stream[Order]` in an annotation."""
        return GenericAlias(cls, item)

    def __init__(self, inlet: Inlet, verbs: tuple[Verb, ...] = (), moves: list[tuple[str, Any]] | None = None) -> None:
        self._inlet, self._verbs = inlet, verbs
        self.moves = [] if moves is None else moves
        """The requests of the agent that decide where it runs and what it reads; the build inspects them."""

    def __aiter__(self) -> AsyncIterator[Any]:
        found: AsyncIterator[Any] = self._inlet
        for verb in self._verbs:
            found = verb(found)
        return found

    def _with(self, verb: Verb) -> Stream:
        return Stream(self._inlet, (*self._verbs, verb), self.moves)

    def events(self) -> AsyncIterator[Event]:
        """Iterate over the records with their keys, headers and times."""
        return self._with(_events).__aiter__()

    def items(self) -> AsyncIterator[tuple[Any, Any]]:
        """Iterate over pairs of key and value."""
        return self._with(_items).__aiter__()

    def filter(self, predicate: Callable[[Any], Any]) -> Stream:
        async def verb(values: AsyncIterator[Any]) -> AsyncIterator[Any]:
            async for value in values:
                if value is END or await _result(predicate(value)):
                    yield value

        return self._with(verb)

    def map(self, function: Callable[[Any], Any]) -> Stream:
        return self._with(_mapping(function))

    def add_processor(self, processor: Callable[[Any], Any]) -> None:
        """Call a function with each value; its result replaces the value."""
        self._verbs = (*self._verbs, _mapping(processor))

    def echo(self, *channels: Any) -> Stream:
        """Send each value to topics, channels or agents too."""
        self.moves.extend(("echo", channel) for channel in channels)

        async def verb(values: AsyncIterator[Any]) -> AsyncIterator[Any]:
            async for value in values:
                if value is not END:
                    for channel in channels:
                        await current_event().forward(channel, key=None, value=value, headers=())
                yield value

        return self._with(verb)

    def enumerate(self, start: int = 0) -> AsyncIterator[tuple[int, Any]]:
        """Iterate over values with their number, which restarts with each batch."""

        async def verb(values: AsyncIterator[Any]) -> AsyncIterator[Any]:
            number = start
            async for value in values:
                yield number, value
                number += 1

        return self._with(verb).__aiter__()

    def take(self, max_: int, within: Any = None) -> AsyncIterator[list[Any]]:
        """Iterate over lists of at most `max_` values. A list ends with the batch at the latest, so `within`
        always holds.
        """
        return self._lists(max_, lambda value: value)

    noack_take = take
    """The same as `take`: records are acknowledged when their batch commits."""

    def take_events(self, max_: int, within: Any = None) -> AsyncIterator[list[Event]]:
        """Iterate over lists of records with their keys, headers and times."""
        return self._lists(max_, lambda value: current_event().of(value))

    def take_with_timestamp(self, max_: int, within: Any, timestamp_field_name: str) -> AsyncIterator[list[Any]]:
        """Iterate over lists of values, each with the time of its record, in seconds, in the field of this name."""

        def stamped(value: Any) -> Any:
            at = current_event().message.timestamp
            if isinstance(value, dict):
                value[timestamp_field_name] = at
            else:
                setattr(value, timestamp_field_name, at)
            return value

        return self._lists(max_, stamped)

    def _lists(self, most: int, item: Callable[[Any], Any]) -> AsyncIterator[list[Any]]:
        inlet, verbs = self._inlet, self._verbs

        async def lists() -> AsyncIterator[list[Any]]:
            taken: list[Any] = []
            values = Stream(_Ending(), verbs).__aiter__()  # type: ignore[arg-type]
            async for value in values:
                if value is not END:
                    taken.append(item(value))
                inlet.holding = value is not END and len(taken) < most
                if taken and not inlet.holding:
                    yield taken
                    taken = []

        return lists()

    def noack(self) -> Stream:
        return self

    def group_by(self, key: Any, *, name: str = "", topic: Any = None, partitions: int | None = None) -> Stream:
        """Move each record to the shard of a field, so that the agent runs on all of them."""
        self.moves.append(("group_by", key))
        return self

    def through(self, topic: Any) -> Stream:
        """Send each record through another topic."""
        self.moves.append(("through", topic))
        return self

    def combine(self, *others: Any) -> Stream:
        """Read the records of other topics too: `stream & payments` is the same."""
        self.moves.extend(("combine", other) for other in others)
        return self

    def __and__(self, other: Any) -> Stream:
        return self.combine(other)

    @property
    def current_event(self) -> Event:
        return current_event()


class _Ending:
    """An inlet whose consumer handles the end of a batch."""

    holding = False

    def __aiter__(self) -> _Ending:
        return self

    def __anext__(self) -> Any:
        return next_item()


def _mapping(function: Callable[[Any], Any]) -> Verb:
    async def verb(values: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for value in values:
            yield value if value is END else await _result(function(value))

    return verb


async def _events(values: AsyncIterator[Any]) -> AsyncIterator[Event]:
    async for value in values:
        yield current_event().of(value)


async def _items(values: AsyncIterator[Any]) -> AsyncIterator[tuple[Any, Any]]:
    async for value in values:
        yield current_event().key, value


async def _result(value: Any) -> Any:
    return await value if isawaitable(value) else value
