"""Append changes together with the position behind them, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from potok.log.broker import LOG_SCHEMA, Broker, PublishedBatch, Staged
from potok.log.errors import MetadataConflict
from potok.log.failpoint import failpoint
from potok.log.partitioner import split
from potok.sources.cdc.errors import CapturedElsewhere, RecordRefused

_PREFIX = "cdc/"


@dataclass(frozen=True, slots=True)
class TableProgress:
    """How far the snapshot of a table is, and the columns that it had last."""

    done: bool = False
    after: tuple[str, ...] | None = None
    """The key of the last row that has landed; None before the first."""
    until: tuple[str, ...] | None = None
    """The largest key when the first chunk was read: rows that were inserted behind it are in the stream."""
    rows: int = 0
    columns: list[list[Any]] | None = None


@dataclass(frozen=True, slots=True)
class CapturePosition:
    """Everything that a capture resumes from."""

    server: Mapping[str, Any]
    """What must be the same when it resumes: the server, its timeline, the slot."""
    stream: Mapping[str, Any] = field(default_factory=dict)
    """The position in the stream of changes."""
    tables: Mapping[str, TableProgress] = field(default_factory=dict)
    batch: int = 0

    def with_table(self, name: str, progress: TableProgress) -> CapturePosition:
        return replace(self, tables={**self.tables, name: progress})

    def to_bytes(self) -> bytes:
        return orjson.dumps(asdict(self))

    @classmethod
    def of_bytes(cls, data: bytes) -> CapturePosition:
        found = orjson.loads(data)
        tables = {name: _progress(each) for name, each in found["tables"].items()}
        return cls(found["server"], found["stream"], tables, found["batch"])


def _progress(found: dict[str, Any]) -> TableProgress:
    keys = {name: None if found.get(name) is None else tuple(found[name]) for name in ("after", "until")}
    return TableProgress(**{**found, **keys})


class Output(NamedTuple):
    """Records of one topic. Without `partition`, each goes to the partition of its key."""

    topic: str
    records: pa.RecordBatch
    partition: int | None = None


class Landing:
    """The only writer of a capture's position."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker, self.name = broker, name
        self._key, self._intended_key = f"{_PREFIX}{name}", f"{_PREFIX}{name}/intended"
        self._partitions: dict[str, int] = {}
        self._stored: bytes | None = None

    def load(self) -> CapturePosition | None:
        """Return the position of the last batch whose records are visible."""
        self._stored = self._broker.get_metadata(self._key)
        if self._stored is None:
            return None
        position = CapturePosition.of_bytes(self._stored)
        intended = self._broker.get_metadata(self._intended_key)
        if intended is None:
            return position
        # Only a log that keeps its metadata elsewhere has intentions.
        following = CapturePosition.of_bytes(intended)
        published = self._broker.published(self._query)
        if published is not None and published.number == following.batch == position.batch + 1:
            self._set(intended)
            return following
        return position

    def store(self, position: CapturePosition) -> None:
        """Store a position behind which there are no further records."""
        self._set(position.to_bytes())

    def land(self, outputs: Sequence[Output], position: CapturePosition) -> CapturePosition:
        """Append records and store the position behind them; return it. Both are durable, or neither."""
        position = replace(position, batch=position.batch + 1)
        staged = [each for output in outputs for each in self._stage(output)]
        data = position.to_bytes()
        if not self._broker.commits_together:
            self._broker.set_metadata({self._intended_key: data}, {self._key: self._stored})
            failpoint("cdc.intended")
        failpoint("cdc.before-landing")
        batch = PublishedBatch(self._query, position.batch, {})
        try:
            self._broker.publish(staged, {self._key: data}, {self._key: self._stored}, batch)
        except MetadataConflict as error:
            raise CapturedElsewhere(self.name, "its position was changed") from error
        failpoint("cdc.landed")
        self._stored = data
        return position

    def delete(self) -> None:
        """Forget the position: the next start takes a new snapshot."""
        self._broker.set_metadata({self._key: None, self._intended_key: None})

    @property
    def _query(self) -> str:
        """The name under which the log knows the transactions of this capture."""
        return f"cdc-{self.name}"

    def _set(self, data: bytes) -> None:
        try:
            self._broker.set_metadata({self._key: data}, {self._key: self._stored})
        except MetadataConflict as error:
            raise CapturedElsewhere(self.name, "its position was changed") from error
        self._stored = data

    def _stage(self, output: Output) -> list[Staged]:
        topic, records, partition = output
        unfit = self._broker.unfit(topic, with_ingested(records))
        if unfit:
            row, why = next(iter(unfit.items()))
            key = records.column("key")[row].as_py() or b""
            raise RecordRefused(topic, key[:200].decode(errors="replace"), why)
        if partition is not None:
            return [self._broker.stage(None, topic, partition, records)]
        if topic not in self._partitions:
            self._partitions[topic] = self._broker.partitions(topic)
        parts = split(records, self._partitions[topic])
        return [self._broker.stage(None, topic, number, part) for number, part in parts]


def with_ingested(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return records in the schema of the log; the log sets when they were ingested."""
    columns = [
        pa.nulls(len(records), field.type) if field.name == "ingested" else records.column(field.name)
        for field in LOG_SCHEMA
    ]
    return pa.record_batch(columns, schema=LOG_SCHEMA)


def captures(broker: Broker) -> dict[str, CapturePosition]:
    """Return the positions of all captures that have landed something in a log."""
    found = broker.list_metadata(_PREFIX)
    return {
        name.removeprefix(_PREFIX): CapturePosition.of_bytes(data)
        for name, data in found.items()
        if not name.endswith("/intended")
    }
