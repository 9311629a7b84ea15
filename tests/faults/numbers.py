"""A workload for sinks: numbers, of which each must come out once; and a table that counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from potok import StreamsBuilder
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.snapshots.state_location import state_of
from potok.snapshots.tables import Tables
from potok.testing.outputs import read_outputs
from tests.faults.drive import Driver, Ended
from tests.faults.gate import Gate, watch_of
from tests.faults.row import Proof
from tests.faults.scene import Scene
from tests.kill.answer import same

DIGITS = 10
SHARDS = 2


def started(prefix: str, watch: list[Any] | None = None) -> tuple[StreamsBuilder, Any]:
    """The builder, and the stream of numbers; a row puts its sink on it."""
    builder = StreamsBuilder(f"{prefix}numbers-query")
    numbers = builder.stream(f"{prefix}numbers", value="n bigint")
    found = watch_of(watch)
    if found is not None:
        numbers.foreach(found, name="watch")
    numbers.group_by(lambda v: v["n"] % DIGITS).count(name="counts")
    return builder, numbers


class Numbers:
    def __init__(self, scene: Scene, build: str, *, log: str = "", **arguments: Any) -> None:
        self.scene, self._build, self._arguments = scene, build, arguments
        self.prefix = f"{scene.name}-"
        self.query = f"{self.prefix}numbers-query"
        self.data = scene.directory / "data"
        self.url = log or f"file:{self.data}"
        self.count = scene.random.randint(300, 600)
        self.batch = self.count // scene.random.randint(6, 9)
        broker = open_broker(self.url)
        broker.create_topic(f"{self.prefix}numbers", 2)
        broker.append(
            f"{self.prefix}numbers", [LogRecord(b"%d" % n, b'{"n": %d}' % n, n * 1_000) for n in range(self.count)]
        )
        broker.close()

    def gate(self) -> Gate:
        number = self.scene.random.randint(self.count // 4, self.count // 2)
        return Gate(str(self.scene.place("gate")), number, {"n": number})

    def start(self, *, failpoint: str = "", gate: Gate | None = None) -> Driver:
        arguments = {"prefix": self.prefix, "watch": None if gate is None else gate.reported, **self._arguments}
        run = {"broker": self.url, "max_batch_records": self.batch, "shards": SHARDS}
        return self.scene.start(self._build, arguments, run, {"POTOK_FAILPOINT": failpoint})

    def run(self, *, failpoint: str = "", gate: Gate | None = None) -> Ended:
        return self.scene.ended(self.start(failpoint=failpoint, gate=gate))

    def topic(self, name: str) -> list[int]:
        """The numbers in a topic of the query's."""
        broker = open_broker(self.url)
        found = [record.value["n"] for record in read_outputs(broker, f"{self.prefix}{name}")]
        broker.close()
        return found

    def prove(self, found: Iterable[int], done: str) -> Proof:
        """Each number has come out once, and the table has counted each once."""
        same("what came out", Counter(found), Counter(range(self.count)))
        broker = open_broker(self.url)
        counts = dict(Tables(broker, self.query)["counts"].all())
        state_of(broker, self.query).close(SHARDS)
        broker.close()
        same("table counts", counts, {digit: len(range(digit, self.count, DIGITS)) for digit in range(DIGITS)})
        return Proof(done)
