"""Read aggregates: their states as tables show them, and their history, folded from the topic of their events."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from potok.clock import epoch_ms
from potok.duration import Duration, to_seconds
from potok.errors import QueryError
from potok.events.event_type import FORGOTTEN
from potok.events.personal.key_store import KeyStore, known_key_store
from potok.log.broker import Broker
from potok.log.open import NoLogThere, log_exists, open_broker
from potok.log.partitioner import partitions_of
from potok.patterns.aggregates.client import Sent, append_command, wait_for_result
from potok.patterns.aggregates.data import to_json
from potok.patterns.aggregates.definition import definition_of
from potok.patterns.aggregates.events import EventReader, EventRecord
from potok.patterns.aggregates.machine import MISSING, Machine, Versioned
from potok.patterns.aggregates.messages import WRITER, Result, command_record, expectation, writer_of
from potok.patterns.aggregates.order import Refolded, with_own
from potok.snapshots.tables import Tables

A = TypeVar("A")


class EventsGone(QueryError):
    """A history whose events are no longer in their topic."""

    def __init__(self, topic: str, key: str, version: int, found: int) -> None:
        super().__init__(
            f'"{key}" has version {version}, but topic "{topic}" has only {found} of its events',
            hint="topics of events must not expire; restore the topic, or read the current state: .get(id)",
        )


class HistoricEvent(NamedTuple):
    """An event of an aggregate, and its place in the history. What an upcast makes of one event shares its version."""

    version: int
    id: str
    type: str
    at: int
    event: Any
    own: bool
    """False if another writer has written it."""


class Aggregates(Generic[A]):
    """The aggregates of one class, by their id. Every read sees the last committed batch."""

    def __init__(self, broker: Broker, cls: type[A], query: str, keys: KeyStore | None = None) -> None:
        self._broker, self._tables = broker, Tables(broker, query)
        self._definition = definition_of(cls)
        self._table = self._tables[self._definition.name]
        self._reader, self._machine = EventReader(self._definition, keys), Machine(self._definition)
        self._writer = writer_of(query, self._definition.name)

    def __repr__(self) -> str:
        return f'<Aggregates "{self._definition.name}" of query "{self._tables.query}">'

    def version(self, aggregate_id: str) -> int:
        """Return the number of events of an aggregate; 0 if it does not exist."""
        row = self._table.get(aggregate_id)
        return 0 if row is None else int(row["version"])

    def get(self, aggregate_id: str, *, as_of: int | datetime | None = None) -> A | None:
        """Return an aggregate; None if it does not exist.

        Args:
            aggregate_id: The id.
            as_of: A version, or an instant: fold the events up to it.
        """
        if as_of is None:
            row = self._table.get(aggregate_id)
            return None if row is None else self._machine.instance(row["state"])
        if isinstance(as_of, int) and as_of < 0:
            raise QueryError(f"there is no version {as_of}", hint="versions start at 1")
        found = MISSING
        for one in self._folded(aggregate_id):
            if one.after.version > as_of if isinstance(as_of, int) else one.at > epoch_ms(as_of):
                break
            found = one.after
        if isinstance(as_of, int) and found.version < as_of:
            text = f'"{aggregate_id}" has version {found.version}, and no version {as_of} yet'
            raise QueryError(text, hint="pass a smaller version, or an instant")
        return None if found.version == 0 else self._machine.instance(found.state)

    def history(self, aggregate_id: str) -> list[HistoricEvent]:
        """Return the events of an aggregate, the oldest first."""
        return [event for one in self._folded(aggregate_id) for event in one.events]

    def send(
        self,
        aggregate_id: str,
        command: object,
        *,
        command_id: str | None = None,
        expected_version: int | Literal["any", "none", "exists"] = "any",
        correlation: str | None = None,
    ) -> Sent:
        """Send a command. It is durable when this returns, and decided by the query; see `result`.

        Args:
            aggregate_id: The id of the aggregate: the key of the command's record.
            command: An instance of the class of a command.
            command_id: The same id runs the command once; a random one by default.
            expected_version: The version that the aggregate must have.
            correlation: The `correlationid` of the events; the id of the command by default.
        """
        named = {one.cls: name for name, one in self._definition.commands.items()}
        if type(command) not in named:
            text = f'{command!r:.200} is not a command of aggregate "{self._definition.name}"'
            raise QueryError(text, hint=f"its commands are {', '.join(named.values())}")
        try:
            expectation(str(expected_version))
        except ValueError as error:
            raise QueryError(str(error)) from error
        id_ = uuid.uuid4().hex if command_id is None else command_id
        options: dict[str, Any] = {"expected_version": expected_version, "correlation": correlation}
        record = command_record(aggregate_id, named[type(command)], to_json(command), command_id=id_, **options)
        return append_command(self._broker, self._definition.name, id_, record)

    def result(self, sent: Sent, timeout: Duration = "10 seconds") -> Result | None:
        """Return the result of a command; None if it is not decided in time."""
        found = wait_for_result(self._broker, sent, to_seconds(timeout))
        return None if found is None else found.result

    def _folded(self, key: str) -> list[_Step]:
        """Return the records in the order in which they were folded."""
        version, line = self.version(key), _Line(self._machine)
        before = Refolded(MISSING, list[tuple[EventRecord, bool]]())
        for value, headers, timestamp in self._records(key):
            own = (WRITER, self._writer) in headers
            try:
                if FORGOTTEN not in self._definition.events and self._reader.is_forgotten(value, headers):
                    continue
                record = self._reader.read(value, headers, timestamp)
            except ValueError:
                continue  # a dead letter
            if own:
                before = with_own(before, (record, True), record.sequence, _version_of, line.fold)
            else:
                before = Refolded(before.known, [*before.open, (record, False)])
            if before.known.version >= version:
                break
        state = before.known
        for item in before.open:
            if state.version == version:
                break
            state = line.tried(state, item)
        if state.version < version:
            raise EventsGone(self._definition.events_topic, key, version, state.version)
        return line.found[:version]

    def _records(self, key: str) -> Iterator[tuple[bytes | None, tuple[tuple[str, bytes], ...], int]]:
        """Yield the records of a key, those of its partition first: the aggregate writes there."""
        topic, encoded = self._definition.events_topic, key.encode()
        count = self._broker.partitions(topic)
        home = int(partitions_of(pa.array([encoded], pa.binary()), count)[0])
        starts, ends = self._broker.start_offsets(topic), self._broker.end_offsets_of([topic])[topic]
        for partition in (home, *(other for other in range(count) if other != home)):
            for batch in self._broker.read(topic, partition, starts.get(partition, 0), ends.get(partition, 0)):
                mine = batch.filter(pc.equal(batch.column("key"), pa.scalar(encoded, pa.binary())))
                for row in mine.select(["value", "headers", "timestamp"]).to_pylist():
                    headers = tuple((one["name"], one["value"]) for one in row["headers"] or ())
                    yield row["value"], headers, row["timestamp"]


class _Step(NamedTuple):
    """A record that was folded: its events, and the aggregate after it."""

    at: int
    events: list[HistoricEvent]
    after: Versioned


class _Line:
    """Folds records and notes each step."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.found: list[_Step] = []

    def fold(self, state: Versioned, item: tuple[EventRecord, bool]) -> Versioned:
        record, own = item
        after = self._machine.folded(state, record.events)
        rendered = [
            HistoricEvent(after.version, one.id, one.type.name, one.at, one.revealed, own) for one in record.events
        ]
        self.found.append(_Step(record.at, rendered, after))
        return after

    def tried(self, state: Versioned, item: tuple[EventRecord, bool]) -> Versioned:
        try:
            return self.fold(state, item)
        except Exception:  # noqa: BLE001 - it was a dead letter when it was first read
            return state


def _version_of(state: Versioned) -> int:
    return state.version


class OpenAggregates(Aggregates[A]):
    """Aggregates with a connection of their own, closed by `close()` or at the end of a `with` block."""

    def close(self) -> None:
        self._broker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_aggregate(
    broker: str | Path, cls: type[A], query: str, *, personal_keys: str | None = None
) -> OpenAggregates[A]:
    """Open the aggregates of a class by the URL of their log, whether their query runs or not.

    >>> with open_aggregate("file:./data", Order, "shop") as orders:
    ...     orders.get("ord_1", as_of=3)

    Args:
        broker: The URL of the log.
        cls: The class of the aggregate.
        query: The name of the query that runs it: that of its `StreamsBuilder`.
        personal_keys: The location of the keys of personal fields. Without it, they are None in histories.
    """
    if not log_exists(broker):
        raise NoLogThere(broker)
    opened = open_broker(broker, shared=False)
    try:
        return OpenAggregates(opened, cls, query, known_key_store(personal_keys or ""))
    except BaseException:
        opened.close()
        raise
