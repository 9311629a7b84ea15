"""Store the states of a queue: one metadata key per partition, changed by compare-and-set."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import pyarrow as pa

from potok.log.broker import LOG_SCHEMA, Broker, Staged
from potok.log.clients.consumed_record import ConsumedRecord, records_of
from potok.log.errors import MetadataConflict, OffsetOutOfRange, QueueAtWork
from potok.log.queues.queue_state import QueueState, Run
from potok.log.start import Start, start_offsets
from potok.records.log_record import LogRecord

T = TypeVar("T")

_PREFIX = "queue/"
_LONGEST_PAUSE = 0.05


@dataclass(slots=True)
class Page:
    """The states of all partitions, to be changed in place, and the dead letters to append with the change."""

    states: dict[int, QueueState]
    dead_letters: list[LogRecord] = field(default_factory=list)


class QueueStore:
    """The states of one queue, shared by all processes that work on it.

    The keys contain the topic id: a queue over a recreated topic starts over.
    """

    def __init__(self, broker: Broker, topic: str, group: str, dead_letter_topic: str, start: Start) -> None:
        self._broker = broker
        self._topic = topic
        self._dead_letter_topic = dead_letter_topic
        self._start = start
        self._group = group
        self._of_name = f"{_PREFIX}{quote(group, safe='')}/{topic}/"
        self._prefix = f"{self._of_name}{broker.describe_topic(topic).topic_id}/"
        self._known: dict[int, tuple[bytes, QueueState]] = {}

    def update(self, change: Callable[[Page], T]) -> T:
        """Run `change` on the current states and store the result, all of it or nothing.

        It runs again after a conflict, so it must only change the page.
        """
        pause = 0.001
        while True:
            page = Page({part: state.copy() for part, (_, state) in self._load().items()})
            for part, state in self._missing(page):
                page.states[part] = state
            result = change(page)
            try:
                self._store(page)
            except MetadataConflict:
                # Wait, or workers on the same partition would retry at the same moment.
                time.sleep(random.random() * pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            return result

    def states(self) -> dict[int, QueueState]:
        """Return the current states, for reading."""
        return {part: state for part, (_, state) in self._load().items()}

    def restart(self, offsets: Mapping[int, int], now_ms: int) -> None:
        """Reset partitions to other offsets, as if no later record had ever been delivered."""

        def reset(page: Page) -> None:
            out = sum(state.counts(now_ms, 0).out for state in page.states.values())
            if out:
                raise QueueAtWork(self._group, out)
            for partition, offset in offsets.items():
                page.states[partition] = QueueState(offset)
                page.states[partition].touched = True

        self.update(reset)

    def forget_deleted_topics(self) -> None:
        """Remove the states of deleted topics with the same name."""
        stale = [name for name in self._broker.list_metadata(self._of_name) if not name.startswith(self._prefix)]
        if stale:
            self._broker.set_metadata(dict.fromkeys(stale))

    def _load(self) -> dict[int, tuple[bytes, QueueState]]:
        """Load the states, decoding only those that changed."""
        found = {}
        for name, data in self._broker.list_metadata(self._prefix).items():
            part = int(name.removeprefix(self._prefix))
            known = self._known.get(part)
            found[part] = known if known is not None and known[0] == data else (data, QueueState.of_bytes(data))
        self._known = found
        return found

    def _missing(self, page: Page) -> Iterator[tuple[int, QueueState]]:
        """Yield partitions that are new to the queue. Those added later are read from their start."""
        if len(page.states) == self._broker.partitions(self._topic):
            return
        offsets = self._broker.start_offsets(self._topic)
        if not page.states:
            offsets |= start_offsets(self._broker, [self._topic], self._start).get(self._topic, {})
        for part, offset in offsets.items():
            if part not in page.states:
                state = QueueState(offset)
                state.touched = True
                yield part, state

    def _store(self, page: Page) -> None:
        touched = {part: state for part, state in page.states.items() if state.touched}
        if not touched:
            return
        updates = {part: state.to_bytes() for part, state in touched.items()}
        expect = {self._name(part): self._known[part][0] if part in self._known else None for part in touched}
        named = {self._name(part): data for part, data in updates.items()}
        if page.dead_letters:
            with tempfile.TemporaryDirectory(prefix="potok-queue-") as directory:
                self._broker.publish(self._staged(Path(directory), page.dead_letters), named, expect)
        else:
            self._broker.set_metadata(named, expect)
        for part, state in touched.items():
            state.touched = False
            self._known[part] = (updates[part], state)

    def _staged(self, directory: Path, dead_letters: list[LogRecord]) -> list[Staged]:
        self._broker.create_topic(self._dead_letter_topic, exist_ok=True)
        rows = [
            {
                "key": dead_letter.key,
                "value": dead_letter.value,
                "timestamp": dead_letter.timestamp_ms,
                "headers": [{"name": name, "value": value} for name, value in dead_letter.headers] or None,
            }
            for dead_letter in dead_letters
        ]
        batch = pa.RecordBatch.from_pylist(rows, LOG_SCHEMA)
        for number in self._broker.unfit(self._dead_letter_topic, batch):
            rows[number] = self._truncated(rows[number])
        return [self._broker.stage(directory, self._dead_letter_topic, 0, pa.RecordBatch.from_pylist(rows, LOG_SCHEMA))]

    def _truncated(self, dead_letter: dict[str, Any]) -> dict[str, Any]:
        """Truncate a dead letter to the size limit: a rejected one would block everything stored with it."""
        for candidate in _shorter(dead_letter):
            if not self._broker.unfit(self._dead_letter_topic, pa.RecordBatch.from_pylist([candidate], LOG_SCHEMA)):
                return candidate
        return dead_letter

    def _name(self, partition: int) -> str:
        return f"{self._prefix}{partition}"


def _shorter(dead_letter: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the dead letter with less and less of its value, then without key and headers of its record."""
    headers = [*dead_letter["headers"], {"name": "potok.bytes", "value": b"cut"}]
    value = dead_letter["value"]
    while value:
        value = value[: len(value) // 2]
        yield {**dead_letter, "value": value, "headers": headers}
    yield {**dead_letter, "key": None, "value": None, "headers": headers}
    notes = max(at for at, header in enumerate(headers) if header["name"] == "potok.topic")
    yield {**dead_letter, "key": None, "value": None, "headers": headers[notes:]}


def queues(broker: Broker) -> dict[str, list[str]]:
    """Return the topics of each group that has a queue, without deleted ones."""
    found: dict[str, set[str]] = {}
    for name in broker.list_metadata(_PREFIX):
        group, topic, topic_id, _ = name.removeprefix(_PREFIX).split("/")
        if broker.has_topic(topic) and broker.describe_topic(topic).topic_id == topic_id:
            found.setdefault(unquote(group), set()).add(topic)
    return {group: sorted(topics) for group, topics in sorted(found.items())}


Claims = list[tuple[int, Run]]
"""Claimed runs, with their partitions."""

_NEAR = 1_000


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A request of a worker: a number of records, and `ahead` more for its next requests.

    Partition number `turn` is tried first: workers that start at different partitions rarely conflict.
    """

    most: int
    ahead: int
    turn: int
    now_ms: int
    due_ms: int


def claim(topic: str, ends: Mapping[int, int], request: ClaimRequest, page: Page) -> Claims:
    """Claim records of the page."""
    claims: Claims = []
    numbers = sorted(page.states)
    turn, most, ahead = request.turn % len(numbers), request.most, request.ahead
    for partition in (*numbers[turn:], *numbers[:turn]):
        state, end = page.states[partition], ends.get(partition, 0)
        if state.next > end:
            # The log is shorter than before: an old copy was restored.
            raise OffsetOutOfRange(topic, partition, (state.next, state.next), (0, end))
        for run in state.claim(request.now_ms, most, ahead, end, request.due_ms):
            claims.append((partition, run))
            if run.deliveries:
                most -= run.end - run.first
            else:
                ahead -= run.end - run.first
    return claims


def read_runs(broker: Broker, topic: str, partition: int, runs: Sequence[Run]) -> Iterator[ConsumedRecord]:
    """Yield the records of runs, given in order, reading across small gaps."""
    at = 0
    while at < len(runs):
        last = at
        while last + 1 < len(runs) and runs[last + 1].first - runs[last].end <= _NEAR:
            last += 1
        for batch in broker.read(topic, partition, runs[at].first, runs[last].end):
            yield from records_of(batch, (topic, partition))
        at = last + 1
