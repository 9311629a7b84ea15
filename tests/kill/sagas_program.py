"""Sagas that get killed while they send commands, wait and compensate, and what plain Python says of their events."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import potok
from potok import StreamsBuilder
from potok.log.broker import Broker
from potok.records.log_record import LogRecord
from potok.testing.outputs import read_dead_letters, read_outputs
from tests.kill import without_spark
from tests.kill.answer import same
from tests.oracle.sagas import Happening, Plan, Play, Step
from tests.properties.sagas import message, saga_of

EVENTS = 3_000
INSTANCES = 150
END = 10_000_000
PLAN = Plan(
    (
        Step("a", 0, undo=True, waits=True, timeout_ms=900, retries=1, delay_ms=70),
        Step("b", 1, undo=True, waits=True, timeout_ms=1_500),
        Step("c", 1, retries=2),
        Step("d", 2, timeout_ms=1_200, retries=1, delay_ms=50, pivot=True),
    )
)


def build(prefix: str = "") -> StreamsBuilder:
    builder = StreamsBuilder("sagas-query")
    builder.saga(saga_of(PLAN), events="events", commands="commands", emits="out")
    return builder


def happenings() -> Iterator[Happening]:
    """Events of all instances, one each millisecond: most answers are good, some come twice, late, or not at all."""
    heard = ["start", "a.ok", "b.ok", "c.ok", "d.ok", "a.failed", "c.failed", "a.undone", "b.undo_failed", "b.undone"]
    actions = ["retry", "skip", "abort"]
    turns: dict[int, int] = defaultdict(int)
    for number in range(EVENTS):
        instance = number * number % 997 % INSTANCES
        turn = turns[instance]
        turns[instance] += 1
        what = heard[turn] if turn < 5 and number % 5 else heard[number * 7 % len(heard)]
        if number % 41 == 0:
            what = actions[number // 41 % 3]
        id_ = f"e{number}" if number % 11 else f"e{instance}"
        yield Happening(1_000 + number, f"k{instance}", what, id_)


def records() -> dict[str, list[LogRecord]]:
    """Return the records of each topic; the last ones are far in the future."""
    found: dict[str, list[LogRecord]] = defaultdict(list)
    far = [Happening(END, f"end-{number}", what, "end") for number in range(20) for what in ("start", "abort")]
    for one in [*happenings(), *far]:
        topic, value = message(one)
        found[topic].append(LogRecord(one.key.encode(), json.dumps(value).encode(), one.at))
    return found


def check(broker: Broker) -> None:
    """Compare commands, events, states and dead letters with what must come of all events."""
    play = Play(PLAN)
    play.run(list(happenings()), END)
    states = {key: case.state for key, case in play.cases.items()}
    assert {"completed", "aborted", "stuck"} <= set(states.values()), "the events prove little"
    for topic, expected in (("commands", play.sent), ("out", play.emitted)):
        found: dict[str, list[Any]] = defaultdict(list)
        for record in read_outputs(broker, topic):
            if record.key.startswith("k"):
                key = [(dict(record.headers)["idempotency-key"] or b"").decode()] if topic == "commands" else []
                found[record.key].append((record.timestamp_ms, record.value["type"], *key))
        same(f"topic {topic}", found, expected)
    instances = potok.open_tables(broker.url, "sagas-query")["made.instances"].all()
    same("instances", {key: row["state"] for key, row in instances.items() if key.startswith("k")}, states)
    letters = [one for one in read_dead_letters(broker, "sagas-query-dead-letters") if "end-" not in str(one.key)]
    assert len(letters) == sum(play.refused.values())


if __name__ == "__main__":
    without_spark.main(sys.argv[1], int(sys.argv[2]), "", build)
