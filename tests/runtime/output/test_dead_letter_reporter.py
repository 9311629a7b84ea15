"""What is reported about dead letters while a query runs."""

from __future__ import annotations

from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.operators.core.dead_letters import ReasonCounter
from potok.operators.core.task_report import Report
from potok.runtime.batches.batch import BatchRunner
from potok.runtime.output.dead_letter_reporter import EVERY_S, DeadLetterReporter

ERROR = ("bank", "error")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def counter(count: int, error: str = "ValueError: overdrawn", topic: str = "transfers") -> ReasonCounter:
    return ReasonCounter(count, error, topic, 0, 17)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reporter(clock: Clock) -> DeadLetterReporter:
    builder = StreamsBuilder("shop")
    builder.stream("transfers").map_values(lambda v: v, name="bank").to("out")
    return DeadLetterReporter(builder.build(), clock=clock)


def reported(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    found = [(record.levelname, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return found


def test_the_first_is_reported_at_once_with_its_position_and_the_others_are_counted(
    reporter: DeadLetterReporter, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    see = "potok dead-letters list --query shop"
    reporter.report({ERROR: counter(1)})
    assert reported(caplog) == [
        ("ERROR", f'step "bank": ValueError: overdrawn (record transfers/0@17, set aside; {see})')
    ]
    reporter.report({ERROR: counter(300)})
    reporter.report({ERROR: counter(63)})
    assert reported(caplog) == []
    clock.now += EVERY_S
    reporter.report_pending()
    assert reported(caplog) == [("ERROR", f'step "bank": 363 more records set aside (error); {see}')]
    reporter.report_pending()
    assert reported(caplog) == []


def test_repeated_reports_become_rarer_and_new_ones_are_immediate(
    reporter: DeadLetterReporter, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    reporter.report({ERROR: counter(1)})
    reported(caplog)
    at: list[float] = []
    for second in range(1, 41):
        clock.now = second
        reporter.report({ERROR: counter(1)})
        at += [second] * len(reported(caplog))
    assert at == [EVERY_S, 3 * EVERY_S, 7 * EVERY_S]
    reporter.report({("bank", "late"): counter(1)})
    assert [level for level, _ in reported(caplog)] == ["WARNING"]


def test_pending_reports_are_logged_at_the_end(reporter: DeadLetterReporter, caplog: pytest.LogCaptureFixture) -> None:
    reporter.report({ERROR: counter(2)})
    reporter.report({ERROR: counter(1)})
    reporter.report_pending(now=True)
    first, rest = (text for _, text in reported(caplog))
    assert "record transfers/0@17, 1 more record, set aside" in first
    assert "1 more record set aside" in rest


def test_late_records_are_a_warning_and_windows_have_no_position(
    reporter: DeadLetterReporter, caplog: pytest.LogCaptureFixture
) -> None:
    reporter.report({("bank", "late"): counter(1, "late by 3 s", topic="")})
    ((level, text),) = reported(caplog)
    assert level == "WARNING"
    assert "late by 3 s (set aside;" in text


def test_a_log_that_commands_do_not_find_is_named(caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder("shop")
    builder.stream("transfers").to("out")
    DeadLetterReporter(builder.build(), "file:./my data").report({ERROR: counter(1)})
    assert "--query shop --broker 'file:./my data'" in reported(caplog)[0][1]


def test_the_dead_letters_of_an_agent_come_back_with_the_report(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reports: list[Report] = []
    finish = BatchRunner.finish

    def kept(self: BatchRunner, spec: Any, report: Report) -> None:
        finish(self, spec, report)
        reports.append(report)

    monkeypatch.setattr(BatchRunner, "finish", kept)
    app = faust.App("bank")

    @app.agent("transfers")
    async def transfer(stream: Any) -> None:
        async for amount in stream:
            if amount < 0:
                raise ValueError("overdrawn")

    with InProcess(app) as driver:
        for amount in (1, -1, 2, -2):
            driver.send("transfers", amount)
        driver.run()
        caplog.clear()
        reporter = DeadLetterReporter(app.build())
        for report in reports:
            reporter.report(report.reason_counts)
    ((level, text),) = reported(caplog)
    assert level == "ERROR"
    assert text.startswith('agent "transfer": ValueError: overdrawn, at ')
    assert "(record transfers/0@1, 1 more record, set aside;" in text
