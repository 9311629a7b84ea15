"""What an agent is given: its records, one after the other, and the verbs that may stand before them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from inspect import isawaitable
from types import GenericAlias
from typing import Any

from potok.faust.event import Event, current_event
from potok.faust.unsupported import refuse
from potok.operators.agents.drive import END, Inlet, next_item

Verb = Callable[[AsyncIterator[Any]], AsyncIterator[Any]]


class Stream:
    """The records of an agent. Each verb returns a stream, which can be iterated over once.

    >>> @app.agent(orders)
    ... async def large(stream):
    ...     async for order in stream.filter(lambda order: order.amount > 100):
    ...         await alerts.send(value=order)
    """

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        """`Stream[Order]` in an annotation."""
        return GenericAlias(cls, item)

    def __init__(self, inlet: Inlet, verbs: tuple[Verb, ...] = (), moves: list[tuple[str, Any]] | None = None) -> None:
        self._inlet, self._verbs = inlet, verbs
        self.moves = [] if moves is None else moves
        """What the agent asked for that decides where it runs and what it takes; the build looks at it."""

    def __aiter__(self) -> AsyncIterator[Any]:
        found: AsyncIterator[Any] = self._inlet
        for verb in self._verbs:
            found = verb(found)
        return found

    def __getattr__(self, name: str) -> Any:
        return refuse("Stream", name)

    def _with(self, verb: Verb) -> Stream:
        return Stream(self._inlet, (*self._verbs, verb), self.moves)

    def events(self) -> AsyncIterator[Event]:
        """The records with their keys, headers and times."""
        return self._with(_events).__aiter__()

    def items(self) -> AsyncIterator[tuple[Any, Any]]:
        """Pairs of key and value."""
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
        """Call a function with each value; what it returns is the value from there on."""
        self._verbs = (*self._verbs, _mapping(processor))

    def echo(self, *channels: Any) -> Stream:
        """Send each value on to topics, channels or agents too."""
        self.moves.extend(("echo", channel) for channel in channels)

        async def verb(values: AsyncIterator[Any]) -> AsyncIterator[Any]:
            async for value in values:
                if value is not END:
                    for channel in channels:
                        await current_event().forward(channel, key=None, value=value, headers=())
                yield value

        return self._with(verb)

    def enumerate(self, start: int = 0) -> AsyncIterator[tuple[int, Any]]:
        """Values with their number; it begins again with each batch."""

        async def verb(values: AsyncIterator[Any]) -> AsyncIterator[Any]:
            number = start
            async for value in values:
                yield number, value
                number += 1

        return self._with(verb).__aiter__()

    def take(self, max_: int, within: Any = None) -> AsyncIterator[list[Any]]:
        """Lists of at most `max_` values. A list ends with the batch at the latest, so `within` is always kept."""
        return self._lists(max_, lambda value: value)

    noack_take = take
    """The same: records are done with when their batch commits."""

    def take_events(self, max_: int, within: Any = None) -> AsyncIterator[list[Event]]:
        """Lists of records with their keys, headers and times."""
        return self._lists(max_, lambda value: current_event().of(value))

    def take_with_timestamp(self, max_: int, within: Any, timestamp_field_name: str) -> AsyncIterator[list[Any]]:
        """Lists of values, each with the time of its record, in seconds, in the field of this name."""

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
        """Each record on the shard of a field, so that the agent runs on all of them."""
        self.moves.append(("group_by", key))
        return self

    def through(self, topic: Any) -> Stream:
        """Each record by way of another topic."""
        self.moves.append(("through", topic))
        return self

    def combine(self, *others: Any) -> Stream:
        """The records of other topics too: `stream & payments` is the same."""
        self.moves.extend(("combine", other) for other in others)
        return self

    def __and__(self, other: Any) -> Stream:
        return self.combine(other)

    @property
    def current_event(self) -> Event:
        return current_event()


class _Ending:
    """An inlet whose user understands that a batch ends."""

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
