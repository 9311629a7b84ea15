"""The workload of most rows: the orders of `tests.kill.orders_program`, their answer, and the program over them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from potok import StreamsBuilder
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.state_location import state_of
from tests.faults.drive import Driver, Ended
from tests.faults.gate import Gate, Stumble, watch_of
from tests.faults.row import Proof
from tests.faults.scene import Scene
from tests.kill import orders_program
from tests.kill.answer import Answer, check

BUILD = "tests.faults.orders:build"
TOGETHER = 100
"""Records of one append: the log checks them together, so there must be several."""


def build(prefix: str, watch: list[Any] | None = None) -> StreamsBuilder:
    return orders_program.build(prefix, watch_of(watch))


class Orders:
    """So many orders in so many partitions, by chance, and what plain Python makes of them before anything breaks."""

    def __init__(
        self,
        scene: Scene,
        url: str = "",
        *,
        settings: Mapping[str, Any] | None = None,
        partitions: int = 0,
        padding: int = 0,
    ) -> None:
        """`padding` makes each order so many bytes longer."""
        self.scene = scene
        self.data = scene.directory / "data"
        self.url = url or f"file:{self.data}"
        self.prefix = f"{scene.name}-"
        self.query = f"{self.prefix}orders-query"
        chance = scene.random
        self.records = chance.randint(700, 1_200)
        self.batch = self.records // chance.randint(10, 14)
        self.partitions, self.shards = partitions or chance.randint(1, 4), chance.randint(1, 3)
        self.settings = dict(settings or {})
        self.environment: dict[str, str] = {}
        self.spread = chance.random() < 0.5
        self.topic = f"{self.prefix}orders"
        with self.log() as log:
            log.create_topic(self.topic, self.partitions)
            for first in range(0, self.records, TOGETHER):
                numbers = range(first, min(first + TOGETHER, self.records))
                log.append(self.topic, [_order(number, padding) for number in numbers])
            self.ends = log.end_offsets(self.topic)
            self.answer = Answer(log, self.ends, self.topic)
        seen = sum(self.answer.counts.values()) + sum(1 for place in self.answer.dead if place[2] == "decode")
        assert seen == self.records, "the log has lost orders before anything broke"

    @contextmanager
    def log(self) -> Iterator[Broker]:
        """The log, and the state next to it, open in this process no longer than needed: files are exchanged below."""
        broker = open_broker(self.url)
        try:
            yield broker
        finally:
            entry = read_entry(broker, self.query)
            if entry is not None:
                state_of(broker, self.query).close(entry.shards)
            broker.close()

    def gate(self, first: float = 0.25, last: float = 0.5) -> Gate:
        """A gate at some order between two parts of all: by default about a third of the batches are done before it."""
        number, fields = self.some(first, last)
        return Gate(str(self.scene.place("gate")), number, fields)

    def some(self, first: float = 0.25, last: float = 0.5) -> tuple[int, dict[str, Any]]:
        """The number of an order that decodes, and its fields, which no order before it has."""
        orders = [orders_program.record(number)[1] for number in range(self.records)]
        known = {value: number for number, value in reversed(list(enumerate(orders)))}
        begin, end = int(first * self.records), int(last * self.records)
        fresh = [number for number in range(begin, end) if number % 41 and known[orders[number]] == number]
        number = self.scene.random.choice(fresh)
        return number, json.loads(orders[number])

    def start(self, *, failpoint: str = "", gate: Gate | Stumble | None = None, **settings: Any) -> Driver:
        arguments = {"prefix": self.prefix, "watch": None if gate is None else gate.reported}
        run = {"broker": self.url, "max_batch_records": self.batch, "shards": self.shards, **self.settings, **settings}
        environment = {**self.environment, "POTOK_FAILPOINT": failpoint}
        return self.scene.start(BUILD, arguments, run, environment, spread=self.spread)

    def run(self, *, failpoint: str = "", gate: Gate | Stumble | None = None, **settings: Any) -> Ended:
        return self.scene.ended(self.start(failpoint=failpoint, gate=gate, **settings))

    def check_snapshot(self) -> int:
        """What is visible is what the committed offsets stand for; returns how many records those are."""
        with self.log() as log:
            entry = read_entry(log, self.query)
            if entry is None:
                return 0
            check(log, self.prefix)
            return sum(entry.offsets.topics.get(self.topic, {}).values())

    def prove(self, done: str) -> Proof:
        """Compare all tables and topics with the answer that was there before anything broke."""
        with self.log() as log:
            entry = read_entry(log, self.query)
            assert entry is not None, "the query never began"
            assert entry.offsets.topics[self.topic] == self.ends, "records were left unread"
            check(log, self.prefix, self.answer)
        return Proof(done)


def _order(number: int, padding: int) -> LogRecord:
    key, value, timestamp = orders_program.record(number)
    if padding and value.endswith(b"}"):
        value = value[:-1] + b', "note": "' + b"x" * padding + b'"}'
    return LogRecord(key, value, timestamp)
