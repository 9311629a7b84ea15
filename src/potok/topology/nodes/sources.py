"""Sources: where records are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from potok.events.event_type import EventTypes
from potok.expressions.function import Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes.node import Node
from potok.topology.nodes.retention import FOREVER, Lifetime
from potok.topology.nodes.stateless import About


@dataclass(frozen=True, slots=True)
class Serde:
    """How bytes become a key or a value and back: a format, and a schema unless the values are dynamic."""

    format: str
    schema: Schema | None = None

    def __str__(self) -> str:
        return f"{self.schema.ddl()} as {self.format}" if self.schema else f"dynamic as {self.format}"


class TimeNotion(Enum):
    """Which clock provides the timestamps of a source."""

    EVENT = "event"
    INGESTION = "ingestion"
    PROCESSING = "processing"


@dataclass(frozen=True, slots=True)
class Timestamps:
    """Where the event time of a source's records comes from: the record itself, a field, or a function of key and
    value.

    `format` is how text is parsed, as by `strptime`, or says that numbers are `seconds` or `microseconds`.
    `max_jump_ms` limits how far one record may advance the stream time of its partition. A record whose time
    cannot be read becomes a dead letter or, with `strict`, stops the query.
    """

    notion: TimeNotion = TimeNotion.EVENT
    function: Function | None = None
    text: str = "record timestamp"
    format: str = ""
    max_jump_ms: int | None = None
    strict: bool = False


UNAVAILABLE = "potok-unavailable"
"""Header with the fields that a change event left out, inside a query: the table fills them from the row before."""

TRUNCATED = "potok-rows-deleted"
"""Header of a truncate that is followed by a record without a value for each row that it has deleted."""


@dataclass(frozen=True, slots=True)
class OwnRecords:
    """Records that a query has written to a topic that it reads: they have this header, and it does not read them."""

    query: str
    header: str
    value: bytes


@dataclass(frozen=True, slots=True, eq=False)
class StreamSource(Node):
    """The records of a topic, including those without a value, unless it `skips_null`. `partitions` is the number
    of partitions of the topic if it is created. With `events`, records are envelopes, and the values are the data of
    their events.
    """

    topic: str
    key: Serde
    value: Serde
    timestamps: Timestamps
    skips_null: bool = False
    partitions: int | None = None
    events: EventTypes | None = None
    own: OwnRecords | None = None
    permanent: bool = False
    """Whether the topic is created so that its records never expire, and must not be compacted."""


@dataclass(frozen=True, slots=True, eq=False)
class Refresh:
    """How the driver loads a table from outside the log: with a function that returns a DataFrame, whose column `key`
    identifies a row, once or at an interval. The function is not sent to the tasks.
    """

    load: Callable[[Any], Any] | None
    key: str
    interval_ms: int | None

    def __reduce__(self) -> tuple[object, ...]:
        return Refresh, (None, self.key, self.interval_ms)


@dataclass(frozen=True, slots=True, eq=False)
class TableSource(Node):
    """The records of a topic as upserts by key; a null value deletes. `about` adds metadata of a record to the
    row: fields by name, after those that it has.
    """

    topic: str
    key: Serde
    value: Serde
    timestamps: Timestamps
    lifetime: Lifetime = FOREVER
    about: tuple[tuple[str, About], ...] = ()
    every_update: bool = False
    """Whether a null value is emitted also for a key without a row, as in Kafka Streams."""
    refresh: Refresh | None = None
    """Where the records of the topic come from, if the query itself writes them."""

    @property
    def stateful(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return self.lifetime.timed

    @property
    def cells(self) -> str:
        return self.lifetime.cells

    @property
    def is_table(self) -> bool:
        return True
