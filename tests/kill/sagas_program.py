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
from tests.oracle.saga_handlers import HandlerPlay
from tests.oracle.sagas import Happening, Plan, Play, Step
from tests.properties.saga_handlers import HEARD, handlers_of, rules_of
from tests.properties.sagas import ACTIONS, message, saga_of

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
RULES = rules_of(
    {
        "started": [("send",), ("set", "one", 700), ("set", "two", 2_500)],
        "heard_a": [("count",), ("remember",), ("send",), ("raise", 0), ("set", "one", 900)],
        "heard_b": [("emit",), ("clear", "one"), ("compensate",), ("count",)],
        "after_one": [("count",), ("send",), ("raise", 1), ("set", "one", 400)],
        "after_two": [("remember",), ("raise", 0), ("emit",), ("complete",)],
        "on_abort": [("send",), ("abort",)],
    }
)


def build(prefix: str = "") -> StreamsBuilder:
    builder = StreamsBuilder("sagas-query")
    builder.saga(saga_of(PLAN), events="events", commands="commands", emits="out")
    builder.saga(handlers_of(RULES), events="heard", commands="asked", emits="told")
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
        for saga in ("made", "handled") if one.what in ACTIONS else ("made",):
            topic, value = message(one, saga)
            record = LogRecord(one.key.encode(), json.dumps(value).encode(), one.at)
            found[topic].append(record)
            if one.what in HEARD:
                found["heard"].append(record)
    return found


def check(broker: Broker) -> None:
    """Compare commands, events, states and dead letters with what must come of all events."""
    play, handled = Play(PLAN), HandlerPlay(RULES)
    play.run(list(happenings()), END)
    handled.run([one for one in happenings() if one.what in (*HEARD, *ACTIONS)], END)
    assert {"completed", "aborted", "stuck"} <= {case.state for case in handled.cases.values()}
    states = {key: case.state for key, case in play.cases.items()}
    assert {"completed", "aborted", "stuck"} <= set(states.values()), "the events prove little"
    sent: list[tuple[str, Any]] = [("commands", play.sent), ("asked", handled.sent)]
    with_keys = {topic for topic, _ in sent}
    for topic, expected in [*sent, ("out", play.emitted), ("told", handled.emitted)]:
        found: dict[str, list[Any]] = defaultdict(list)
        for record in read_outputs(broker, topic):
            if record.key.startswith("k"):
                key = [(dict(record.headers)["idempotency-key"] or b"").decode()] if topic in with_keys else []
                found[record.key].append((record.timestamp_ms, record.value["type"], *key))
        same(f"topic {topic}", found, expected)
    instances = potok.open_tables(broker.url, "sagas-query")["made.instances"].all()
    same("instances", {key: row["state"] for key, row in instances.items() if key.startswith("k")}, states)
    rows = potok.open_tables(broker.url, "sagas-query")["handled.instances"].all()
    states = {key: (case.state, case.data) for key, case in handled.cases.items()}
    same("handled", {key: (row["state"], row["data"]) for key, row in rows.items() if key.startswith("k")}, states)
    letters = [one for one in read_dead_letters(broker, "sagas-query-dead-letters") if "end-" not in str(one.key)]
    for step, refused in (("made", play.refused), ("handled", handled.refused)):
        assert len([one for one in letters if one.step == step]) == sum(refused.values()), step


if __name__ == "__main__":
    without_spark.main(sys.argv[1], int(sys.argv[2]), "", build)
