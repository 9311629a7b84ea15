"""Ticks for what waits on processing time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.operators.core.task_report import Report
from potok.runtime.planning.planner import Planner
from potok.runtime.queries.ledger import Ledger
from potok.state.entry import Entry, metadata_key_of
from potok.state.offsets import Offsets

LONG = 1 << 40
READ = Offsets({"t": {0: 0}})


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker.shared(tmp_path)
    broker.create_topic("t", 1)
    yield broker
    broker.close()


def planner(broker: EmbeddedBroker, timer_in_ms: int, **options: Any) -> Planner:
    now = int(time.time() * 1000)
    entry = Entry(epoch=1, offsets=READ, next_timers={"p": now + timer_in_ms})
    broker.set_metadata({metadata_key_of("q", "ledger"): entry.to_bytes()})
    return Planner(broker, Ledger(broker, "q"), ["t"], {}, LONG, LONG, **options)


def test_a_timer_that_is_due_causes_an_empty_batch_with_its_processing_time(broker: EmbeddedBroker) -> None:
    found = planner(broker, -1).next()
    assert found.empty_batches == 1 and found.topics == READ.topics
    assert found.at_ms >= int(time.time() * 1000) - 60_000


def test_a_timer_that_is_not_due_causes_no_batch(broker: EmbeddedBroker) -> None:
    assert planner(broker, 600_000).next() == READ


def test_processing_time_may_be_ahead_of_the_watermark(broker: EmbeddedBroker) -> None:
    found = planner(broker, 600_000, ahead_ms=700_000).next()
    assert found.empty_batches == 1
    assert found.at_ms > int(time.time() * 1000) + 600_000


def test_a_run_with_an_end_takes_only_what_was_due_when_it_started(broker: EmbeddedBroker) -> None:
    ends = {"t": {0: 0}}
    assert planner(broker, -1, target=ends).next().empty_batches == 1
    late = planner(broker, 600_000, target=ends)
    entry = Entry(epoch=1, offsets=READ, next_timers={"p": late._began_ms + 1})
    broker.set_metadata({metadata_key_of("q", "ledger"): entry.to_bytes()})
    assert late.next() == READ


def test_a_system_clock_that_was_set_back_since_the_start_makes_nothing_due(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = planner(broker, -1, target={"t": {0: 0}})
    monkeypatch.setattr("potok.runtime.planning.planner.now_ms", lambda: due._began_ms - 86_400_000)
    assert due.next() == READ


def test_an_entry_keeps_its_timers_and_an_older_one_has_none() -> None:
    entry = Entry(next_timers={"p": 5})
    assert Entry.of_bytes(entry.to_bytes()).next_timers == {"p": 5}
    older = entry.to_bytes().replace(b', "next_timers": {"p": 5}', b"").replace(b'"next_timers": {"p": 5}, ', b"")
    assert b"next_timers" not in older
    assert Entry.of_bytes(older).next_timers == {}


def test_of_several_tasks_the_earliest_timer_counts() -> None:
    total = Report(next_timers={"p": 7})
    total.add(Report(next_timers={"p": 5, "q": 9}))
    assert total.next_timers == {"p": 5, "q": 9}
