"""Read the instances of sagas, and send them the actions of operators."""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.patterns.sagas.control import action_of, control_topic
from potok.patterns.sagas.instance import ABORTED, ABORTING, COMPLETED, ENDED, RUNNING, STATES, STUCK
from potok.patterns.sagas.processor import ACTIONS, INSTANCES
from potok.records.keys import encode_key
from potok.records.log_record import NO_TIMESTAMP, LogRecord
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import read_description
from potok.snapshots.rows.key_text import parse_key
from potok.snapshots.rows.row_reader import RowReader
from potok.snapshots.snapshot import Snapshot
from potok.snapshots.tables import Tables
from potok.sql.errors import closest
from potok.state.store import LONGEST_PREFIX, stored_key

BY_URGENCY = (STUCK, ABORTING, RUNNING, ABORTED, COMPLETED)


class NoSuchSaga(QueryError):
    """No query runs the saga."""

    def __init__(self, saga: str, known: list[str]) -> None:
        hint = closest(saga, known) or (f"there are: {', '.join(known)}" if known else "no program has a saga")
        super().__init__(f'there is no saga "{saga}"', hint=hint)


class SeveralSagas(QueryError):
    """Several queries run a saga of this name."""

    def __init__(self, saga: str, queries: list[str]) -> None:
        super().__init__(f'several queries run saga "{saga}": {", ".join(queries)}', hint="name the query")


class NoSuchInstance(QueryError):
    """The saga has no such instance, or has forgotten it."""

    def __init__(self, saga: str, key: str) -> None:
        hint = "an ended instance is removed after keep= of its saga"
        super().__init__(f'saga "{saga}" has no instance "{key}"', hint=hint)


class UnknownState(QueryError):
    """A state that instances are never in."""

    def __init__(self, state: str) -> None:
        super().__init__(f'"{state}" is not a state', hint=f"there are: {', '.join(STATES)}")


class NoNextPage(QueryError):
    """A page after a key, of all states: they are not in the order of their keys."""

    def __init__(self) -> None:
        super().__init__("pages of all states cannot be continued", hint="name the state")


class ActionRefused(QueryError):
    """The state of an instance does not allow what an operator wants."""

    def __init__(self, saga: str, key: str, state: str, action: str) -> None:
        hint = "it has ended" if state in ENDED else "only a stuck instance accepts retry or skip"
        super().__init__(f'instance "{key}" of saga "{saga}" is {state} and does not take {action}', hint=hint)


@dataclass(frozen=True, slots=True)
class SagaOf:
    """A saga that a query runs."""

    name: str
    query: str
    by: str
    clock: str
    grace_ms: int
    summary: str


def sagas_of(broker: Broker, queries: Iterable[str]) -> list[SagaOf]:
    """Return the sagas of queries, by name."""
    found: list[SagaOf] = []
    for query in queries:
        steps = (read_description(broker, query) or {}).get("steps", ())
        found += [
            SagaOf(step["name"], query, detail["by"], detail["clock"], detail["grace_ms"], step["detail"])
            for step in steps
            if (detail := step.get("saga"))
        ]
    return sorted(found, key=lambda one: (one.name, one.query))


def saga_named(sagas: Iterable[SagaOf], name: str) -> SagaOf:
    """Find a saga; raise if there is none, or more than one."""
    known = list(sagas)
    found = [one for one in known if one.name == name]
    if not found:
        raise NoSuchSaga(name, sorted({one.name for one in known}))
    if len(found) > 1:
        raise SeveralSagas(name, [one.query for one in found])
    return found[0]


class SagaInstances:
    """The instances of one saga; each call reads one committed batch."""

    def __init__(self, broker: Broker, saga: SagaOf) -> None:
        self._broker, self.saga = broker, saga
        self._tables = Tables(broker, saga.query)
        self._layouts = self._tables.layouts()

    def get(self, key: str) -> dict[str, Any]:
        """Return an instance with its steps and its history."""
        return self._found(key)[1]

    def _found(self, text: str) -> tuple[Any, dict[str, Any]]:
        reader = self._reader(INSTANCES)
        for key in parse_key(reader.layout, text):
            encoded = encode_key(key, reader.key_type)
            found = self._tables.read(
                lambda snapshot, encoded=encoded: reader.get(snapshot, encoded)  # type: ignore[misc]
            )
            if found is not None:
                return key, {"saga": self.saga.name, "id": key, **_render(found)}
        raise NoSuchInstance(self.saga.name, text)

    def listed(self, state: str | None = None, limit: int = 100, after: str | None = None) -> list[dict[str, Any]]:
        """Return the instances in a state, or the most urgent ones, by key.

        Args:
            state: The state; all of them, those that wait for operators first, if None.
            limit: The largest number of instances.
            after: Only those with a greater key; for one state.
        """
        if state is not None and state not in STATES:
            raise UnknownState(state)
        if state is None and after is not None:
            raise NoNextPage
        readers = [(one, self._reader(one)) for one in (BY_URGENCY if state is None else (state,))]

        def work(snapshot: Snapshot) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            for one, reader in readers:
                if len(found) < limit:
                    found += self._in_state(snapshot, one, reader, limit - len(found), after)
            return found

        return self._tables.read(work)

    def cells(self) -> dict[bytes, tuple[str, bytes]]:
        """Return the state and the stored summary of all instances, by their stored key."""

        def work(snapshot: Snapshot) -> dict[bytes, tuple[str, bytes]]:
            return {key: (state, data) for state in STATES for key, data in self._reader(state).in_span(snapshot)}

        return self._tables.read(work)

    def shown_cells(self, cells: Iterable[tuple[bytes, tuple[str, bytes]]]) -> list[dict[str, Any]]:
        """Decode what `cells` returned."""
        found: list[dict[str, Any]] = []
        for key, (state, data) in cells:
            rows = self._reader(state).decoded([(key, data)])
            found += [self._row(state, *row) for row in zip(rows.keys, rows.values, strict=True)]
        return found

    def batch(self) -> int:
        entry = read_entry(self._broker, self.saga.query)
        return 0 if entry is None else entry.batch

    def control(self, text: str, action: str, id_: str | None = None) -> dict[str, Any]:
        """Append the record of an action; return the instance as it is before that."""
        key, instance = self._found(text)
        state = instance["state"]
        if action in ACTIONS and (state in ENDED or (action != "abort" and state != STUCK)):
            raise ActionRefused(self.saga.name, text, state, action)
        record_key, value = action_of(self.saga.by, key, action, id_)
        at_ms = self._event_time() if self.saga.clock == "event" else NO_TIMESTAMP
        record = LogRecord(record_key.encode(), json.dumps(value).encode(), at_ms)
        self._broker.append(control_topic(self.saga.name), [record])
        return instance

    def _event_time(self) -> int:
        """Return a time that the step which sorts events by time lets pass at once."""
        watermark = self._tables.watermark_ms(f"{self.saga.name}.ordered")
        return 0 if watermark is None or watermark < 0 else max(0, watermark - self.saga.grace_ms - 1)

    def _in_state(
        self, snapshot: Snapshot, state: str, reader: RowReader, limit: int, after: str | None
    ) -> list[dict[str, Any]]:
        key = b"" if after is None else encode_key(parse_key(reader.layout, after)[0], reader.key_type) or b""
        cells = reader.in_span(snapshot, (key[:LONGEST_PREFIX], None), in_order=True)
        if after is not None:
            last = stored_key(key)
            cells = (cell for cell in cells if stored_key(cell[0]) > last)
        found: list[dict[str, Any]] = []
        while len(found) < limit:
            some = list(itertools.islice(cells, limit - len(found)))
            if not some:
                break
            rows = reader.decoded(some)
            found += [self._row(state, *row) for row in zip(rows.keys, rows.values, strict=True)]
        return found

    def _row(self, state: str, key: Any, summary: Mapping[str, Any]) -> dict[str, Any]:
        return {"saga": self.saga.name, "id": key, "state": state, **summary}

    def _reader(self, name: str) -> RowReader:
        return RowReader(self._layouts[f"{self.saga.name}.{name}"])


def _render(instance: Mapping[str, Any]) -> dict[str, Any]:
    timers = instance["timers"]
    name = min(timers, key=lambda one: (timers[one], one), default=None)
    following = None if name is None else {"name": name, "at": timers[name]}
    hidden = ("key", "saga", "group", "began")
    return {field: value for field, value in instance.items() if field not in hidden} | {"next_timer": following}


def merged(pages: Iterable[list[dict[str, Any]]], limit: int) -> list[dict[str, Any]]:
    """Merge the lists of several sagas, those that wait for operators first."""
    order = {state: number for number, state in enumerate(BY_URGENCY)}
    return heapq.nsmallest(limit, itertools.chain(*pages), key=lambda one: (order[one["state"]], one["saga"]))
