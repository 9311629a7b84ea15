"""Where the states of a queue are kept: one mark for each partition, changed by whoever finds it as expected."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import pyarrow as pa

from potok.log.broker import LOG_SCHEMA, Broker, Staged
from potok.log.errors import MetadataConflict, QueueAtWork
from potok.log.queues.queue_state import QueueState
from potok.records.log_record import LogRecord

T = TypeVar("T")

_PREFIX = "queue/"
_LONGEST_PAUSE = 0.05


@dataclass(slots=True)
class Page:
    """The states of all partitions, to be changed in place, and what is to be appended along with the change."""

    states: dict[int, QueueState]
    letters: list[LogRecord] = field(default_factory=list)


class QueueMarks:
    """The states of one queue, shared with all processes that work on it.

    The names hold the topic's id: a queue over a topic that was deleted and created again begins anew.
    """

    def __init__(self, broker: Broker, topic: str, group: str, letter_topic: str, from_beginning: bool) -> None:
        self._broker = broker
        self._topic = topic
        self._letter_topic = letter_topic
        self._from_beginning = from_beginning
        self._group = group
        self._of_name = f"{_PREFIX}{quote(group, safe='')}/{topic}/"
        self._prefix = f"{self._of_name}{broker.describe_topic(topic).topic_id}/"
        self._known: dict[int, tuple[bytes, QueueState]] = {}

    def update(self, change: Callable[[Page], T]) -> T:
        """Run `change` on the present states and store what it did, all of it or nothing.

        It runs again if somebody else was faster, so it must not do anything but change the page.
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
                # Whoever works on the same partition would otherwise try again at the same moment, too.
                time.sleep(random.random() * pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            return result

    def states(self) -> dict[int, QueueState]:
        """As they are, to be looked at."""
        return {part: state for part, (_, state) in self._load().items()}

    def restart(self, offsets: Mapping[int, int], now_ms: int) -> None:
        """Begin partitions anew at other offsets, as if nothing behind them had ever been handed out."""

        def begin(page: Page) -> None:
            out = sum(state.counts(now_ms, 0).out for state in page.states.values())
            if out:
                raise QueueAtWork(self._group, out)
            for partition, offset in offsets.items():
                page.states[partition] = QueueState(offset)
                page.states[partition].touched = True

        self.update(begin)

    def forget_deleted_topics(self) -> None:
        """Of the same name: what was done there says nothing about this one."""
        stale = [name for name in self._broker.list_metadata(self._of_name) if not name.startswith(self._prefix)]
        if stale:
            self._broker.set_metadata(dict.fromkeys(stale))

    def _load(self) -> dict[int, tuple[bytes, QueueState]]:
        """Decodes only what is not as it was left."""
        found = {}
        for name, data in self._broker.list_metadata(self._prefix).items():
            part = int(name.removeprefix(self._prefix))
            known = self._known.get(part)
            found[part] = known if known is not None and known[0] == data else (data, QueueState.of_bytes(data))
        self._known = found
        return found

    def _missing(self, page: Page) -> Iterator[tuple[int, QueueState]]:
        """Partitions that the queue has not seen yet. Later ones are read whole: the queue was there before them."""
        if len(page.states) == self._broker.partitions(self._topic):
            return
        whole = self._from_beginning or bool(page.states)
        offsets = self._broker.start_offsets(self._topic) if whole else self._broker.end_offsets(self._topic)
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
        if page.letters:
            with tempfile.TemporaryDirectory(prefix="potok-queue-") as directory:
                self._broker.publish(self._staged(Path(directory), page.letters), named, expect)
        else:
            self._broker.set_metadata(named, expect)
        for part, state in touched.items():
            state.touched = False
            self._known[part] = (updates[part], state)

    def _staged(self, directory: Path, letters: list[LogRecord]) -> list[Staged]:
        self._broker.create_topic(self._letter_topic, exist_ok=True)
        rows = [
            {
                "key": letter.key,
                "value": letter.value,
                "timestamp": letter.timestamp_ms,
                "headers": [{"name": name, "value": value} for name, value in letter.headers] or None,
            }
            for letter in letters
        ]
        batch = pa.RecordBatch.from_pylist(rows, LOG_SCHEMA)
        for number in self._broker.unfit(self._letter_topic, batch):
            rows[number] = self._cut(rows[number])
        return [self._broker.stage(directory, self._letter_topic, 0, pa.RecordBatch.from_pylist(rows, LOG_SCHEMA))]

    def _cut(self, letter: dict[str, Any]) -> dict[str, Any]:
        """A letter that is refused would keep whatever is stored along with it from being stored, for ever; so it goes
        with as much of its record as fits."""
        for candidate in _shorter(letter):
            if not self._broker.unfit(self._letter_topic, pa.RecordBatch.from_pylist([candidate], LOG_SCHEMA)):
                return candidate
        return letter

    def _name(self, partition: int) -> str:
        return f"{self._prefix}{partition}"


def _shorter(letter: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The letter with ever less of the value, then without key and headers of its record."""
    headers = [*letter["headers"], {"name": "potok.bytes", "value": b"cut"}]
    value = letter["value"]
    while value:
        value = value[: len(value) // 2]
        yield {**letter, "value": value, "headers": headers}
    yield {**letter, "key": None, "value": None, "headers": headers}
    notes = max(at for at, header in enumerate(headers) if header["name"] == "potok.topic")
    yield {**letter, "key": None, "value": None, "headers": headers[notes:]}


def queues(broker: Broker) -> dict[str, list[str]]:
    """The topics of each group that has a queue, without those that are gone."""
    found: dict[str, set[str]] = {}
    for name in broker.list_metadata(_PREFIX):
        group, topic, topic_id, _ = name.removeprefix(_PREFIX).split("/")
        if broker.has_topic(topic) and broker.describe_topic(topic).topic_id == topic_id:
            found.setdefault(unquote(group), set()).add(topic)
    return {group: sorted(topics) for group, topics in sorted(found.items())}
