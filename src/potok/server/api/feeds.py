"""Feeds of records or table changes from a position; a client that reconnects resumes after the last event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from potok.server.errors import BadRequest
from potok.server.ksql.json_rows import RowWriter, dump
from potok.sql.analysis.scope import source_fields
from potok.sql.catalog import Source
from potok.statements.database import Database
from potok.statements.frames import python_rows
from potok.statements.push.tail import Block, tail_of
from potok.statements.records.decode import RecordReader
from potok.statements.results import ResultColumn

_R = "R"
_POSITION_COLUMNS = ("ROWTIME", "ROWPARTITION", "ROWOFFSET")

Positions = dict[int, int]
"""The next offset of each partition."""


@dataclass(frozen=True, slots=True)
class Event:
    """A record, or a `gap`: records that retention deleted before the client returned."""

    id: str
    data: bytes
    kind: str = ""


class Feed:
    """Events of one source for one client. One thread at a time calls `take`; any thread may call `close`."""

    look_s: float | None = None
    """How often `take` is called if nothing wakes the reader; None for never."""

    def __init__(self, database: Database, source: Source, positions: Mapping[int, int]) -> None:
        self._source, self._positions = source, dict(positions)
        self._gaps = _skip_gaps(self._positions, database.broker.earliest_offsets(source.topic))
        fields = [field for field in source_fields(source, _R, positions=True) if not field.hidden]
        self._slots = [field.slot for field in fields] + [f"{_R}.{name}" for name in _POSITION_COLUMNS]
        self._reader = RecordReader(source, _R, frozenset(self._slots))
        self._writer = RowWriter([ResultColumn(field.name, field.type, field.is_key) for field in fields])
        self._keys = [column.name for column in self._writer.columns if column.is_key]
        self.subscription = tail_of(database).subscribe(source.topic, self._positions)

    def take(self) -> list[Event] | None:
        """Return new events, possibly none; None at the end. Raises the reason if the client was dropped."""
        if self._gaps:
            gaps, self._gaps = self._gaps, []
            return [Event(format_positions(self._positions), dump(gap), "gap") for gap in gaps]
        blocks = self.subscription.take(0)
        if self.subscription.closed:
            return None
        events = [event for block in blocks for event in self._events(block)]
        if not events:
            self.subscription.remind()
        return events

    def _events(self, block: Block) -> list[Event]:
        read = self._reader.read(block.batch, block.partition)
        rows = python_rows([read.frame.columns[slot] for slot in self._slots], read.frame.rows)
        deleted = read.deletes.to_pylist() if self._source.is_table else [False] * len(rows)
        return [self._event(row, gone) for row, gone in zip(rows, deleted, strict=True)]

    def _event(self, row: tuple[Any, ...], gone: bool) -> Event:
        *values, rowtime, partition, offset = row
        named = self._writer.named(tuple(values))
        body: dict[str, Any] = {"rowtime": rowtime, "partition": partition, "offset": offset}
        if self._source.is_table:
            body["key"] = {name: named[name] for name in self._keys}
        body["row"] = None if gone else named
        self._positions[partition] = offset + 1
        return Event(format_positions(self._positions), dump(body))

    def close(self) -> None:
        self.subscription.close()


def check_start(start: str) -> None:
    """Raise if a feed cannot start there."""
    if start not in ("now", "beginning"):
        raise BadRequest(f'a feed cannot start at "{start}"', hint="write from=now or from=beginning")


def positions_of(database: Database, source: Source, last_id: str | None, start: str) -> Positions:
    """Return the start position of a client: after its last event, at the beginning, or now."""
    broker, topic = database.broker, source.topic
    if last_id:
        known = broker.earliest_offsets(topic)
        return {**known, **parse_positions(last_id, broker.end_offsets(topic))}
    check_start(start)
    return dict(broker.end_offsets(topic) if start == "now" else broker.earliest_offsets(topic))


def format_positions(positions: Mapping[int, int]) -> str:
    """Parse an event id such as `0:12,1:7`."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items()))


def parse_positions(text: str, ends: Mapping[int, int]) -> Positions:
    positions: Positions = {}
    for part in text.split(","):
        partition, colon, offset = part.strip().partition(":")
        if not (colon and partition.isdecimal() and offset.isdecimal() and max(len(partition), len(offset)) < 19):
            raise BadRequest(
                f'"{text}" is not an event id of this feed', hint="send the id of the last event unchanged"
            )
        if int(partition) not in ends or int(offset) > ends[int(partition)]:
            hint = "the topic was created again, or the id is of another topic: start with from=beginning"
            raise BadRequest(f'there is no event "{text}" here', hint=hint)
        positions[int(partition)] = int(offset)
    return positions


def _skip_gaps(positions: Positions, earliest: Mapping[int, int]) -> list[dict[str, int]]:
    gaps = []
    for partition, first in earliest.items():
        wanted = positions.get(partition, 0)
        if wanted < first:
            gaps.append({"partition": partition, "from": wanted, "to": first})
            positions[partition] = first
    return gaps
