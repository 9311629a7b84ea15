"""Dead letters of the queries of a catalog reach the log of the process that runs them."""

from __future__ import annotations

import logging

import pytest

from potok.records.log_record import LogRecord
from potok.runtime.output.dead_letter_reporter import EVERY_S, DeadLetterReporter
from potok.statements.queries import dead_letter_log
from statements.running import Running

COPY = "CREATE STREAM copy AS SELECT * FROM a;"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(dead_letter_log, "DeadLetterReporter", lambda *given: DeadLetterReporter(*given, clock=found))
    return found


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "potok.runtime.output.dead_letter_reporter")
    return caplog


def spoil(database: Running, count: int = 1) -> None:
    """Records that are not JSON, read by the queries."""
    for _ in range(count):
        database.broker.append("a", [LogRecord(b"k", b"no json", 0)])
    database.run()


def lines(logged: pytest.LogCaptureFixture) -> list[str]:
    found = [
        record.getMessage() for record in logged.records if record.name == "potok.runtime.output.dead_letter_reporter"
    ]
    logged.clear()
    return found


def test_the_first_dead_letter_is_logged_at_once_and_the_others_are_counted(
    database: Running, clock: Clock, logged: pytest.LogCaptureFixture
) -> None:
    query = database.do(COPY).query_id
    spoil(database)
    (first,) = lines(logged)
    assert f"potok dead-letters list --query {query} --broker" in first
    assert "record a/0@5" in first
    spoil(database, 3)
    assert lines(logged) == []
    clock.now += EVERY_S
    database.tend()
    (more,) = lines(logged)
    assert "3 more records set aside" in more


def test_each_query_reports_its_own(database: Running, clock: Clock, logged: pytest.LogCaptureFixture) -> None:
    counts = "CREATE TABLE counts AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;"
    queries = [database.do(COPY).query_id, database.do(counts).query_id]
    spoil(database)
    found = lines(logged)
    assert len(found) == 2
    assert all(any(query in line for line in found) for query in queries)


def test_what_was_not_reported_is_when_a_query_or_the_process_ends(
    database: Running, clock: Clock, logged: pytest.LogCaptureFixture
) -> None:
    dropped = database.do(COPY).query_id
    database.do("CREATE STREAM other AS SELECT * FROM a;")
    spoil(database)
    spoil(database)
    assert len(lines(logged)) == 2
    database.do("DROP STREAM copy;")
    database.tend()
    (at_drop,) = lines(logged)
    assert f"--query {dropped}" in at_drop
    database.close()
    (at_end,) = lines(logged)
    assert "1 more record set aside" in at_end
