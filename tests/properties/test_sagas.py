"""Sagas: the same commands, events and states as in plain Python, whatever the steps, batches, shards and restarts."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import potok
from potok.runtime.operations.shadow import shadow_of
from potok.testing import TestDriver
from tests.oracle.choreographies import watch
from tests.oracle.saga_handlers import HandlerPlay
from tests.oracle.sagas import Happening, Play
from tests.properties.saga_handlers import handlers_of, heard, rules
from tests.properties.sagas import (
    choreography_of,
    happenings,
    message,
    plans,
    saga_of,
    watched_events,
    watched_plans,
)

EXAMPLES = int(os.environ.get("POTOK_EXAMPLES", "60"))
END = 1_000_000
SOON = 1_400
"""Handlers may set timers without end."""


def send(driver: TestDriver, one: Happening, partition: int, saga: str = "made") -> None:
    topic, value = message(one, saga)
    driver.send(topic, value, key=one.key, timestamp=one.at, partition=partition if topic == "events" else None)


@settings(
    max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(st.data())
def test_sagas_do_not_depend_on_batches_shards_and_restarts(data: st.DataObject) -> None:
    plan = data.draw(plans())
    given_ = data.draw(happenings(plan))
    batch = data.draw(st.sampled_from([1, 2, 3, None]))
    shards, spread = data.draw(st.sampled_from([1, 3])), data.draw(st.booleans())
    restart_at = data.draw(st.integers(0, len(given_)))
    expected = Play(plan)
    expected.run(given_, END)

    builder = potok.StreamsBuilder("made")
    builder.saga(saga_of(plan), events="events", commands="commands", emits="out", grace="3 ms")
    with TestDriver(builder, partitions={"events": 2}, shards=shards, spread=spread) as driver:
        for number, one in enumerate(given_):
            if number == restart_at:
                driver.run(batch, more_to_come=True)
                driver.restart()
            send(driver, one, data.draw(st.integers(0, 1)))
        for partition in (0, 1):
            send(driver, Happening(END + 3, f"end{partition}", "start", "end"), partition)
        send(driver, Happening(END + 3, "end", "abort", "end"), 0)
        driver.run(batch)
        found = driver.table("made.instances").all()
        states = {key: one["state"] for key, one in found.items() if key.startswith("k")}
        assert states == {key: case.state for key, case in expected.cases.items()}, plan
        assert _by_key(driver, "commands") == expected.sent, plan
        assert _by_key(driver, "out") == expected.emitted, plan
        for name in ("running", "aborting", "stuck", "completed", "aborted"):
            listed = {key for key in driver.table(f"made.{name}").all() if key.startswith("k")}
            assert listed == {key for key, state in states.items() if state == name}, plan
        letters = [letter for letter in driver.dead_letters() if not str(letter.key).startswith("end")]
        assert len(letters) == sum(expected.refused.values()), (plan, letters)
        check_rebuilt(driver, builder, found)


@settings(
    max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(st.data())
def test_choreographies_do_not_depend_on_batches_shards_and_restarts(data: st.DataObject) -> None:
    plan = data.draw(watched_plans())
    events = data.draw(watched_events(plan))
    restart_at = data.draw(st.integers(0, len(events)))
    builder = potok.StreamsBuilder("watched")
    builder.saga(choreography_of(plan), events="events")
    with TestDriver(builder, shards=data.draw(st.sampled_from([1, 3]))) as driver:
        for number, (key, what, id_) in enumerate(events):
            if number == restart_at:
                driver.run(more_to_come=True)
                driver.restart()
            value = {"event_id": id_, "event_type": what, "data": {"id": key}}
            driver.send("events", value, key=key, timestamp=number)
        driver.run(data.draw(st.sampled_from([1, 2, 3, None])))
        found = {key: row["state"] for key, row in driver.table("watched.instances").all().items()}
        assert found == watch(plan, events), plan
        assert not driver.dead_letters()


@settings(
    max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(st.data())
def test_sagas_of_handlers_do_not_depend_on_batches_shards_and_restarts(data: st.DataObject) -> None:
    made, given_ = data.draw(rules()), data.draw(heard())
    batch = data.draw(st.sampled_from([1, 2, 3, None]))
    restart_at = data.draw(st.integers(0, len(given_)))
    expected = HandlerPlay(made)
    expected.run(given_, SOON)

    builder = potok.StreamsBuilder("handled")
    builder.saga(handlers_of(made), events="events", commands="commands", emits="out", grace="3 ms")
    with TestDriver(builder, partitions={"events": 2}, shards=data.draw(st.sampled_from([1, 3]))) as driver:
        for number, one in enumerate(given_):
            if number == restart_at:
                driver.run(batch, more_to_come=True)
                driver.restart()
            send(driver, one, data.draw(st.integers(0, 1)), saga="handled")
        for partition in (0, 1):
            send(driver, Happening(SOON + 3, f"end{partition}", "start", "end"), partition)
        send(driver, Happening(SOON + 3, "end", "abort", "end"), 0, saga="handled")
        driver.run(batch)
        rows = driver.table("handled.instances").all()
        found = {key: (one["state"], one["data"]) for key, one in rows.items() if key.startswith("k")}
        assert found == {key: (case.state, case.data) for key, case in expected.cases.items()}, made
        assert _by_key(driver, "commands") == expected.sent
        assert _by_key(driver, "out") == expected.emitted
        letters = [letter for letter in driver.dead_letters() if not str(letter.key).startswith("end")]
        assert len(letters) == expected.refused.total(), letters
        check_rebuilt(driver, builder, rows, "handled.instances")


def _by_key(driver: TestDriver, topic: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for record in driver.read(topic):
        headers = dict(record.headers)
        if record.key.startswith("k"):
            key = (headers["idempotency-key"] or b"").decode()
            kind = record.value["type"]
            found[record.key].append((record.timestamp_ms, kind, *([key] if topic == "commands" else [])))
    return dict(found)


def check_rebuilt(
    driver: TestDriver, builder: potok.StreamsBuilder, instances: dict[str, Any], table: str = "made.instances"
) -> None:
    """A shadow has the same instances and sends nothing to those who listen."""
    sent = len(driver.read("commands"))
    shadow = TestDriver(shadow_of(builder.build()), directory=driver.broker.directory)
    shadow.run()
    rebuilt = shadow.table(table).all()
    shadow.leave()
    assert rebuilt == instances
    assert len(driver.read("commands")) == sent
