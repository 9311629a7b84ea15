"""Processors and `ordered`: what each makes of its records, one call at a time, with a copy of all state before it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from potok.duration import to_ms
from potok.records.schemas.schema import Schema
from potok.topology.graph import Topology
from potok.topology.nodes import (
    FlatMap,
    Map,
    Match,
    Merge,
    Node,
    Ordered,
    Process,
    SelectKey,
    Serde,
    StoreTable,
    ToStream,
)
from potok.topology.stores import ListStore, MapStore, Store, ValueStore, WindowStore
from tests.oracle.call import UserError
from tests.oracle.canonical import canonical
from tests.oracle.decode import Undecodable, decode, row
from tests.oracle.patterns import match_all
from tests.oracle.records import Input, Item, Position
from tests.oracle.tables import SetAside

NOWHERE = Position("", -1, -1)


@dataclass
class Failure:
    """A call that raised: what it was called for is set aside."""

    item: Item
    error: Exception


@dataclass
class Memory:
    """All that a key has: the state of each store, and timers as (time, name, stream time when they were set)."""

    key: Any
    stores: dict[str, Any] = field(default_factory=dict)
    timers: list[tuple[int, str, int]] = field(default_factory=list)
    reached_ms: int = -(1 << 62)


Sent = tuple[int | None, Item]
"""What goes to an output, by its number; None is the main one."""


class ProcessorSteps:
    """A processor with its keys. Where records of a key come in one order, timers fire in between."""

    def __init__(self, node: Process) -> None:
        self.node = node
        self.in_one_order = not several_orders(node.upstream)
        self.keys: dict[str, Memory] = {}

    def take(self, item: Item) -> Iterator[Sent | Failure]:
        if item.key is None:
            raise SetAside("no key")
        memory = self.keys.setdefault(canonical(item.key), Memory(item.key))
        if self.in_one_order:
            yield from self.fire(memory, item.stream_time_ms)
            memory.reached_ms = item.stream_time_ms
        yield from self.call(memory, item, lambda ctx, user: user.process(item.key, row(item.value), ctx))

    def close(self, stream_time_ms: int) -> Iterator[Sent | Failure]:
        due = [(text, memory) for text, memory in sorted(self.keys.items())]
        for _, memory in due:
            yield from self.fire(memory, max(stream_time_ms, memory.reached_ms))

    def fire(self, memory: Memory, until_ms: int) -> Iterator[Sent | Failure]:
        while memory.timers and min(memory.timers)[0] <= until_ms:
            timer = min(memory.timers)
            memory.timers.remove(timer)
            at, name, since = timer
            reported, times = {"timer": name, "at": at}, (at, max(at, since))
            item = Item(memory.key, reported, *times, NOWHERE, Input(None, None), headless=True)
            yield from self.call(memory, item, lambda ctx, user, at=at: user.on_timer(memory.key, at, ctx), name)

    def call(
        self, memory: Memory, item: Item, work: Callable[[Any, Any], Any], timer: str | None = None
    ) -> Iterator[Sent | Failure]:
        before = copy.deepcopy(memory)
        ctx = Context(self.node, memory, item, timer)
        user = copy.copy(self.node.processor)
        vars(user).update(ctx.stores)
        try:
            made = work(ctx, user)
            for value in [] if made is None else list(made):
                ctx.forward(value)
            sent = [self.fitted(*each) for each in ctx.sent]
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            memory.stores, memory.timers = before.stores, before.timers
            yield Failure(item, UserError(str(error)))
            return
        for name, store in ctx.stores.items():
            memory.stores[name] = store.state
        yield from sent

    def fitted(self, channel: int | None, item: Item) -> Sent:
        schema = self.node.schema if channel is None else self.node.channels[channel][1]
        return channel, replace(item, value=fit(item.value, schema))


class Context:
    """What the user's code sees."""

    def __init__(self, node: Process, memory: Memory, item: Item, timer: str | None) -> None:
        self.node, self.memory, self.item = node, memory, item
        self.timer, self.timestamp, self.stream_time = timer or "", item.at_ms, item.stream_time_ms
        self.firing = timer is not None
        self.position = None if item.position == NOWHERE else item.position
        self.source = item.position.topic
        self.sent: list[Sent] = []
        self.stores = {name: opened(store, memory.stores.get(name), self) for name, store in node.stores}

    def forward(self, value: Any, key: Any = None, timestamp: int | None = None, to: str | None = None) -> None:
        channel = None if to is None else [name for name, _ in self.node.channels].index(to)
        if key is not None and self.node.fixed_key:
            raise ValueError("the key is fixed")
        made = self.item.part(self.item.key if key is None else key, json.loads(json.dumps(value)), len(self.sent))
        self.sent.append((channel, replace(made, at_ms=self.timestamp if timestamp is None else timestamp)))

    def schedule(self, at: int | None = None, *, after: Any = None, name: str = "", clock: str = "event") -> None:
        if clock != "event":
            raise NotImplementedError("the wall clock is outside the promise")
        due = self.timestamp + to_ms(after) if at is None else at
        if self.firing and due <= self.timestamp:
            raise ValueError("not later")
        if (due, name) not in [timer[:2] for timer in self.memory.timers]:
            self.memory.timers.append((due, name, self.stream_time))

    def cancel(self, name: str = "") -> None:
        self.memory.timers = [timer for timer in self.memory.timers if timer[1] != name]

    def store(self, name: str) -> Any:
        return self.stores[name]


class Value(ValueStore):
    def __init__(self, declared: ValueStore, state: Any) -> None:
        self.default = declared.default
        self.state = state if state is not None else (self.first(),)

    def first(self) -> Any:
        return self.default() if callable(self.default) else copy.deepcopy(self.default)

    def get(self) -> Any:
        return self.state[0]

    def set(self, value: Any) -> None:
        self.state = (copy.deepcopy(value),)

    def delete(self) -> None:
        self.state = (self.first(),)


class Window(WindowStore):
    def __init__(self, declared: WindowStore, state: Any, ctx: Context) -> None:
        self.retention_ms, self.ctx = declared.retention_ms, ctx
        self.state: list[tuple[int, Any]] = [] if state is None else state

    def put(self, at: int, value: Any) -> None:
        self.state.append((at, copy.deepcopy(value)))

    def fetch(self, start: int, end: int) -> list[tuple[int, Any]]:
        held = [item for item in self.state if item[0] + self.retention_ms > self.ctx.stream_time]
        return [item for item in sorted(held, key=lambda item: item[0]) if start <= item[0] <= end]

    def delete(self, start: int, end: int) -> None:
        self.state = [item for item in self.state if not start <= item[0] <= end]


class Items(list[Any]):
    @property
    def state(self) -> list[Any]:
        return list(self)


class Fields(dict[Any, Any]):
    @property
    def state(self) -> dict[Any, Any]:
        return dict(self)


def opened(declared: Store, state: Any, ctx: Context) -> Any:
    match declared:
        case ValueStore():
            return Value(declared, state)
        case ListStore():
            return Items(state or [])
        case MapStore():
            return Fields(state or {})
        case WindowStore():
            return Window(declared, state, ctx)
    raise NotImplementedError(declared.kind)


def fit(value: Any, schema: Schema | None) -> Any:
    """A value as the type of its output has it."""
    if schema is None:
        return value
    try:
        return decode(json.dumps(value).encode(), Serde("json", schema))
    except Undecodable as error:
        raise UserError(str(error)) from error


TIMEOUTS = -1
"""The channel of what had matched when its time was over."""


class OrderedRecords:
    """Records wait until the watermark is past their time and the grace; then they go by time, and then by position."""

    def __init__(self, node: Ordered) -> None:
        self.grace_ms = node.grace_ms
        self.waiting: list[Item] = []

    def take(self, item: Item) -> Iterable[Sent]:
        if item.at_ms + self.grace_ms < item.stream_time_ms:
            raise SetAside("late")
        self.waiting.append(item)
        return ()

    def close(self, stream_time_ms: int) -> Iterator[Sent]:
        """Steps after this one have a watermark that is delayed by the grace."""
        past_ms = stream_time_ms - self.grace_ms
        free = [item for item in self.waiting if item.at_ms < past_ms]
        for item in sorted(free, key=lambda item: (item.at_ms, item.position, item.sub)):
            yield None, replace(item.with_value(item.value), stream_time_ms=item.at_ms)


def several_orders(node: Node) -> bool:
    """Whether records of one key may come from several partitions."""
    if isinstance(node, Map | FlatMap | SelectKey) or (isinstance(node, Process) and not node.fixed_key):
        return True
    if isinstance(node, Merge) and len(Topology("", ()).upstream_topics(node)) > 1:
        return True
    return not isinstance(node, ToStream | Ordered) and any(map(several_orders, node.upstreams))


class MatchedRecords:
    """The records of each key wait for the end of the input, by which the time of every open match must be over."""

    def __init__(self, node: Match) -> None:
        self.node = node
        self.keys: dict[str, list[Item]] = {}

    def take(self, item: Item) -> Iterable[Sent]:
        if item.key is None:
            raise SetAside("no key")
        self.keys.setdefault(canonical(item.key), []).append(item)
        return ()

    def close(self, stream_time_ms: int) -> Iterator[Sent]:
        within_ms = self.node.pattern.within_ms
        for items in self.keys.values():
            if within_ms is not None and items[-1].at_ms + within_ms > stream_time_ms:
                raise NotImplementedError("a match is still open at the end of the input")
            rows = [(item.at_ms, item.value) for item in items]
            matches, timeouts = match_all(self.node.pattern, self.node.after, rows)
            for channel, results in ((None, matches), (TIMEOUTS, timeouts)):
                for result in results:
                    value: dict[str, list[Any]] = {name: [] for name in self.node.variables}
                    for name, index in result.taken:
                        value[name].append(rows[index][1])
                    last = items[result.taken[-1][1]]
                    yield channel, replace(last.with_value(value), at_ms=result.time, stream_time_ms=result.time)


Own = ProcessorSteps | OrderedRecords | MatchedRecords


def own_steps(topology: Topology) -> dict[Node, Own]:
    found: dict[Node, Own] = {}
    for node in topology:
        if isinstance(node, Process):
            found[node] = ProcessorSteps(node)
        elif isinstance(node, Ordered):
            found[node] = OrderedRecords(node)
        elif isinstance(node, Match):
            found[node] = MatchedRecords(node)
    return found


def stored_rows(topology: Topology, own: Mapping[Node, Any]) -> dict[str, dict[str, Any]]:
    """The tables of readable stores: a row for each key whose value is not the default."""
    tables: dict[str, dict[str, Any]] = {}
    for node in topology.of_type(StoreTable):
        steps = own[node.upstream]
        if not isinstance(steps, ProcessorSteps):
            continue
        first = Value(dict(node.upstream.stores)[node.store], None).get()  # type: ignore[arg-type]
        held = {text: memory.stores.get(node.store, (first,))[0] for text, memory in steps.keys.items()}
        tables[node.name] = {text: value for text, value in held.items() if value != first}
    return tables
