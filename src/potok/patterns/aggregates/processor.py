"""Run aggregates as a processor: state in a table, results of commands in memory, events and results as outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from potok.events.event_type import FORGOTTEN, TYPE_FIELD
from potok.events.write import event_id
from potok.patterns.aggregates.data import to_data
from potok.patterns.aggregates.definition import Definition
from potok.patterns.aggregates.events import Event, EventReader, EventRecord, EventWriter
from potok.patterns.aggregates.machine import MISSING, Given, Machine, Versioned
from potok.patterns.aggregates.messages import (
    ANY,
    COMMAND,
    COMMAND_ID,
    CORRELATION_ID,
    EXPECTED,
    REPEATED,
    WRITER,
    Result,
    commands_topic,
    writer_of,
)
from potok.patterns.aggregates.order import Refolded, with_open, with_own
from potok.topology.processor import Position, Processor, ProcessorContext
from potok.topology.stores import RowStore, Store, ValueStore

STATE, MEMORY = "state", "memory"
EVENTS, RESULTS, FOLDED = "events", "results", "folded"

_RESULTS, _KNOWN, _OPEN = "results", "known", "open"
"""In memory: results by command id, and while events are folded again, the state up to the last own event and the
foreign events after it."""


class AggregateProcessor(Processor):
    """The aggregates of one class by their id: one writer for each."""

    def __init__(self, definition: Definition, query: str, envelope: str, foreign: str, keep_ms: int) -> None:
        self.definition, self.query, self._foreign, self._keep_ms = definition, query, foreign, keep_ms
        self._envelope, self._commands = envelope, commands_topic(definition.name)
        self.writer = writer_of(query, definition.name)
        self.decides = True
        """False in a replay or a shadow: events are folded, also the aggregate's own, and commands are not decided."""
        self.forwards = False
        """Whether some step reads the folded events."""
        self._stores: Mapping[str, Any] = {}
        self._open()

    def _open(self) -> None:
        definition = self.definition
        self._machine = Machine(definition, EventWriter(definition, self.query, self._envelope, self.writer))
        self._written = EventWriter(definition, self.query, self._envelope, self.writer)
        self._reader = EventReader(definition)

    def __getstate__(self) -> dict[str, Any]:
        return {name: item for name, item in vars(self).items() if name not in ("_machine", "_written", "_reader")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def declared(self) -> dict[str, Store]:
        return {STATE: RowStore(), MEMORY: ValueStore()}

    def bind(self, stores: Mapping[str, Store]) -> None:
        self._stores = stores

    def process(self, key: Any, value: Any, ctx: ProcessorContext) -> None:
        headers = dict(ctx.headers)
        position = ctx.position
        if position is not None and position.topic == self._commands:
            if self.decides:
                self._command(key, value, headers, position, ctx)
            return
        own = headers.get(WRITER) == self.writer
        if own and self.decides:
            return
        forgotten = not own and self._reader.is_forgotten(value, ctx.headers)
        if forgotten and FORGOTTEN not in self.definition.events:
            return
        if not (own or forgotten) and self._foreign == "dead_letter":
            raise ValueError(f'the event was not written by aggregate "{self.definition.name}"')
        record = self._reader.read(value, ctx.headers, ctx.timestamp)
        if self.decides:
            self._keep(self._machine.folded(self._confirmed(), record.events))
        else:
            self._again(record, own, headers, key, ctx)
        for event in record.events:
            self._forward(event, ctx)

    def _command(
        self, key: str, value: bytes | None, headers: Mapping[str, bytes], position: Position, ctx: ProcessorContext
    ) -> None:
        named = headers.get(COMMAND_ID)
        given_id = None if named is None else named.decode("utf-8", "replace")
        position_name = f"{position.topic}-{position.partition}-{position.offset}"
        command_id = given_id or position_name
        seen = None if given_id is None else self._seen(given_id, ctx.timestamp)
        if seen is not None:
            self._answer(seen.encode(), command_id, headers, ctx, repeated=True)
            return
        before = self._confirmed()
        expected = headers.get(EXPECTED, ANY.encode()).decode("utf-8", "replace")
        sink = f"{self.definition.name}#command"
        decision = self._machine.decide(
            Given(command_id, value, expected, key, ctx.timestamp),
            before,
            lambda number: event_id(self.query, sink, position_name, number),
        )
        correlation = headers.get(CORRELATION_ID, command_id.encode()).decode("utf-8", "replace")
        for event in decision.events:
            data, own = self._written.record(event, key, correlation, command_id, decision.result.command)
            ctx.forward(data, to=EVENTS, headers=own)
            self._forward(event, ctx)
        if decision.events:
            self._keep(decision.after)
        answer = decision.result.to_bytes()
        if given_id is not None:
            self._remember(given_id, answer.decode(), ctx.timestamp)
        self._answer(answer, command_id, headers, ctx)

    def _answer(
        self,
        answer: bytes,
        command_id: str,
        headers: Mapping[str, bytes],
        ctx: ProcessorContext,
        *,
        repeated: bool = False,
    ) -> None:
        own = {COMMAND_ID: command_id.encode()}
        if CORRELATION_ID in headers:
            own[CORRELATION_ID] = headers[CORRELATION_ID]
        if repeated:
            own[REPEATED] = b"true"
        ctx.forward(answer, to=RESULTS, headers=own)

    def _seen(self, command_id: str, at: int) -> str | None:
        memory = self._stores[MEMORY].get()
        results = {} if memory is None else memory.get(_RESULTS, {})
        found = results.get(command_id)
        return None if found is None or found[0] + self._keep_ms < _latest(results, at) else found[1]

    def _remember(self, command_id: str, answer: str, at: int) -> None:
        results = self._memory().setdefault(_RESULTS, {})
        now = _latest(results, at)
        # In the order of their times: those at the front are the oldest.
        while results:
            oldest = next(iter(results))
            if results[oldest][0] + self._keep_ms >= now and oldest != command_id:
                break
            del results[oldest]
        results.pop(command_id, None)
        results[command_id] = [now, answer]

    def _memory(self) -> dict[str, Any]:
        memory = self._stores[MEMORY].get()
        if memory is None:
            self._stores[MEMORY].set({})
            memory = self._stores[MEMORY].get()
        return memory  # type: ignore[no-any-return]

    def _current(self) -> Versioned:
        row = self._stores[STATE].get()
        return MISSING if row is None else Versioned(row["version"], row["state"])

    def _confirmed(self) -> Versioned:
        """Return the aggregate; what a shadow left open has its position_name once commands are decided again."""
        memory = self._stores[MEMORY].get()
        if memory is not None and _OPEN in memory:
            del memory[_OPEN], memory[_KNOWN]
        return self._current()

    def _keep(self, after: Versioned) -> None:
        if after.version:
            self._stores[STATE].set({"version": after.version, "state": after.state})

    def _again(
        self, record: EventRecord, own: bool, headers: Mapping[str, bytes], key: str, ctx: ProcessorContext
    ) -> None:
        """Fold a record of the topic again, in the order in which it was first folded."""
        memory, current = self._memory(), self._current()
        known = Versioned(*memory[_KNOWN]) if _OPEN in memory else current
        waiting = memory.get(_OPEN, [])
        if own:
            found = with_own(Refolded(known, waiting), record.events, record.sequence, _version_of, self._refold)
            self._remember_own(record, headers, key, ctx.timestamp)
        else:
            self._machine.folded(current, record.events)
            found = Refolded(known, [*waiting, [[event.type.name, event.data, event.at] for event in record.events]])
        memory.pop(_OPEN, None)
        memory.pop(_KNOWN, None)
        if found.open:
            memory |= {_OPEN: found.open, _KNOWN: list(found.known)}
        self._keep(with_open(found, self._refold))

    def _refold(self, state: Versioned, events: list[Any]) -> Versioned:
        """Fold the events of one record; those of a foreign one are as the memory holds them."""
        return self._machine.folded(
            state, [one if isinstance(one, Event) else self._reader.stored(*one) for one in events]
        )

    def _remember_own(self, record: EventRecord, headers: Mapping[str, bytes], key: str, now: int) -> None:
        """Build the result of an accepted command from its events, so that the command is not accepted again."""
        command_id = headers.get(COMMAND_ID, b"").decode("utf-8", "replace")
        if not command_id:
            return
        earlier = self._seen(command_id, now)
        events = [] if earlier is None else orjson.loads(earlier)["events"]
        if earlier is not None and orjson.loads(earlier)["version"] >= record.sequence:
            return
        name = headers.get(COMMAND, b"").decode("utf-8", "replace")
        events += [event.rendered() for event in record.events]
        result = Result(command_id, name, key, "accepted", record.sequence, events, at=record.at)
        self._remember(command_id, result.to_bytes().decode(), now)

    def _forward(self, event: Event, ctx: ProcessorContext) -> None:
        if self.forwards:
            data = to_data(event.instance)
            ctx.forward({TYPE_FIELD: event.type.name, **data}, to=FOLDED, headers={})


def _latest(results: dict[str, Any], at: int) -> int:
    """Return the greatest time so far: that of a command, or of the last result."""
    return max(at, results[next(reversed(results))][0]) if results else at


def _version_of(state: Versioned) -> int:
    return state.version
