"""The clock of the machine goes wrong between two batches of one query."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import potok
from potok import StreamsBuilder
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.state_location import state_of
from potok.snapshots.tables import Tables
from potok.testing.outputs import read_outputs
from tests.faults.gate import Gate, watch_of
from tests.faults.row import Proof, row
from tests.faults.scene import Scene
from tests.kill.answer import same

HOUR_S, DAY_S = 3_600, 86_400
SHARDS = 2
MOST_BATCHES = 60


class Remind(potok.Processor):
    """Once for each user, a minute after the first record, by the clock of the machine."""

    known = potok.value_store(default=False)

    def process(self, key: Any, value: Any, ctx: Any) -> None:
        if not self.known.get():
            self.known.set(True)
            ctx.schedule(after="1 minute", clock="wall")

    def on_timer(self, key: Any, at: Any, ctx: Any) -> None:
        ctx.forward({"user": key}, to="reminders")


def build(prefix: str, watch: list[Any] | None) -> StreamsBuilder:
    builder = StreamsBuilder(f"{prefix}reminding")
    visits = builder.stream(f"{prefix}visits", value="user string")
    found = watch_of(watch)
    if found is not None:
        visits.foreach(found, name="watch")
    visits.group_by_key().count(name="visits")
    visits.process(Remind, outputs={"reminders": "user string"}, name="remind")["reminders"].to(f"{prefix}reminders")
    return builder


@row("clock-set-back", "the clock is set back by a day in the middle of a batch, and on again later")
def clock_set_back(scene: Scene) -> Proof:
    users = scene.random.randint(60, 120)
    prefix, url = f"{scene.name}-", f"file:{scene.directory / 'data'}"
    clock = scene.directory / "clock"
    environment = {"PYTHONPATH": str(Path(__file__).parents[1] / "shifted_clock"), "FAULTS_CLOCK": str(clock)}

    def visit() -> None:
        broker = open_broker(url)
        broker.create_topic(f"{prefix}visits", 2, exist_ok=True)
        broker.append(
            f"{prefix}visits",
            [LogRecord(b"user-%d" % n, b'{"user": "user-%d"}' % n, n * 1_000) for n in range(users)],
        )
        broker.close()

    def run(shift_s: int, *, set_back: bool = False) -> None:
        clock.write_text(str(shift_s))
        user = f"user-{scene.random.randint(users // 4, users // 2)}"
        gate = Gate(str(scene.place("gate")), 0, {"user": user}) if set_back else None
        arguments = {"prefix": prefix, "watch": None if gate is None else gate.reported}
        settings = {"broker": url, "max_batch_records": users // 6, "shards": SHARDS}
        driver = scene.start("tests.faults.rows.clock:build", arguments, settings, environment)
        if gate is not None:
            scene.at_gate(gate, driver)
            clock.write_text(str(shift_s - DAY_S))
            gate.let_go()
        scene.ended(driver).must_be_well()

    visit()
    run(0, set_back=True)
    run(HOUR_S)
    # Those who are known and were reminded come again, at a time long before.
    visit()
    run(-2 * DAY_S)
    return _prove(prefix, url, users)


def _prove(prefix: str, url: str, users: int) -> Proof:
    broker, query = open_broker(url), f"{prefix}reminding"
    reminded = Counter(record.value["user"] for record in read_outputs(broker, f"{prefix}reminders"))
    visits = dict(Tables(broker, query)["visits"].all())
    entry = read_entry(broker, query)
    state_of(broker, query).close(SHARDS)
    broker.close()
    assert entry is not None and entry.batch < MOST_BATCHES, "batches that had nothing to do"
    names = [f"user-{n}" for n in range(users)]
    same("reminders", reminded, Counter(names))
    same("table visits", visits, dict.fromkeys(names, 2))
    return Proof(f"set back by a day and on again: each of {users} timers fired once")
