"""Webhooks from a program to a web server, across failures and restarts."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.log.waiting import until
from tests.sinks.web import Site, web_server

from potok import StreamsBuilder
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.open import open_broker
from potok.metadata.metadata_store import MetadataConflict
from potok.records.log_record import LogRecord
from potok.runtime.webhooks.checkpoint import CheckpointStore
from potok.runtime.webhooks.dispatcher import Dispatcher
from potok.runtime.webhooks.journal import NoWebhooks, WebhookJournal, WebhookSelection
from potok.runtime.webhooks.records import Attempt, Outcome, attempts_topic, deliveries_topic, read_attempts
from potok.runtime.webhooks.writer import WebhookWriter
from potok.sinks import WebhookEndpoint
from potok.sinks.sink_spec import Batch, Rows
from potok.sinks.webhooks.retry_schedule import RetrySchedule
from potok.sinks.webhooks.webhooks import WebhookTarget
from potok.sources.webhooks.signatures import verifier_of
from potok.testing import TestDriver

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
STEP = "orders.to_webhook"
NOWHERE = "http://127.0.0.1:9/hooks"
SELECT_ALL = WebhookSelection()


@pytest.fixture
def site() -> Iterator[Site]:
    with web_server() as found:
        yield found


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    opened = open_broker(f"file:{tmp_path}")
    assert isinstance(opened, EmbeddedBroker)
    yield opened
    opened.close()


def target(*endpoints: WebhookEndpoint, pauses_ms: tuple[int, ...] = (10, 10)) -> WebhookTarget:
    return WebhookTarget(endpoints, RetrySchedule(pauses_ms), 4, 2_000, 86_400_000, with_key=False)


def endpoint(url: str, name: str = "shop") -> WebhookEndpoint:
    return WebhookEndpoint(url, (SECRET,), name)


def dispatcher(broker: EmbeddedBroker, *endpoints: WebhookEndpoint, epoch: int = 1, **options: Any) -> Dispatcher:
    return Dispatcher(broker, "q", epoch, {STEP: target(*endpoints, **options)})


def deliver(broker: EmbeddedBroker, numbers: range, batch: int = 1) -> None:
    """Write the deliveries of a batch, as its commit would."""
    broker.create_topic(deliveries_topic("q"), exist_ok=True)
    values = [b'{"n": %d}' % number for number in numbers]
    rows = Rows([None] * len(values), values, np.full(len(values), 1_000, np.int64))
    staged, failures = WebhookWriter(broker, "q", STEP).stage(Batch(1, batch), rows, None)
    assert not failures
    broker.append_staged(staged)


def attempts(broker: EmbeddedBroker) -> list[Attempt]:
    end = broker.end_offsets(attempts_topic("q"))[0]
    return [attempt for _, attempt in read_attempts(broker, "q", 0, end)]


def outcomes(broker: EmbeddedBroker, name: str = "shop") -> list[Outcome]:
    return [attempt.outcome for attempt in attempts(broker) if attempt.endpoint == name]


def test_a_program_sends_its_records_signed_and_with_an_id(site: Site) -> None:
    builder = StreamsBuilder("hooks")
    builder.stream("orders", value="n bigint").to_webhook(site.url, secrets=SECRET)
    with TestDriver(builder) as driver:
        for number in range(3):
            driver.send("orders", {"n": number})
        driver.run()
        until(lambda: len(driver.read("hooks-webhook-attempts")) == 3)
        assert [record.value["outcome"] for record in driver.read("hooks-webhook-attempts")] == ["delivered"] * 3
        identifiers = [record.key for record in driver.read("hooks-webhooks")]
    assert sorted(body["n"] for body in site.bodies) == [0, 1, 2]
    assert sorted(key for key, _ in site.requests) == sorted(identifiers)
    by_id = {headers["webhook-id"]: headers for headers in site.headers}
    bodies = {key: b'{"n":%d}' % body["n"] for key, body in site.requests}
    for identifier, headers in by_id.items():
        verifier_of("standard", [SECRET], tolerance_s=300).verify(headers, bodies[identifier], time.time())


def test_the_id_of_a_delivery_is_that_of_its_batch_and_differs_between_records(broker: EmbeddedBroker) -> None:
    deliver(broker, range(3))
    deliver(broker, range(3))
    keys = [key for batch in broker.read(deliveries_topic("q"), 0, 0, 6) for key in batch.column("key").to_pylist()]
    assert keys[:3] == keys[3:]
    assert len(set(keys)) == 3


def test_a_dead_endpoint_does_not_delay_the_others(broker: EmbeddedBroker, site: Site) -> None:
    deliver(broker, range(50))
    running = dispatcher(broker, endpoint(site.url), endpoint(NOWHERE, "dead"), pauses_ms=(3_600_000,))
    until(lambda: outcomes(broker).count(Outcome.DELIVERED) == 50)
    until(lambda: outcomes(broker, "dead").count(Outcome.RETRY) == 50)
    running.close()
    assert sorted(body["n"] for body in site.bodies) == list(range(50))


def test_a_delivery_is_repeated_with_the_same_id_until_it_is_taken(broker: EmbeddedBroker, site: Site) -> None:
    site.answer = lambda body, tries: 500 if tries < 3 else 204
    deliver(broker, range(1))
    running = dispatcher(broker, endpoint(site.url))
    until(lambda: Outcome.DELIVERED in outcomes(broker))
    running.close()
    assert outcomes(broker) == [Outcome.RETRY, Outcome.RETRY, Outcome.DELIVERED]
    assert len({key for key, _ in site.requests}) == 1
    assert [attempt.status for attempt in attempts(broker)] == [500, 500, 204]


def test_after_the_last_attempt_a_delivery_has_failed_and_can_be_sent_again(broker: EmbeddedBroker, site: Site) -> None:
    site.answer = lambda body, tries: (400, "unknown order") if tries < 4 else 200
    deliver(broker, range(1))
    running = dispatcher(broker, endpoint(site.url))
    until(lambda: Outcome.FAILED in outcomes(broker))
    failed = WebhookJournal(broker, "q").latest(WebhookSelection(outcome=Outcome.FAILED))
    assert [(each.attempt, each.error) for each in failed] == [(3, "HTTP 400: unknown order")]
    assert WebhookJournal(broker, "q").redrive(WebhookSelection(outcome=Outcome.FAILED)) == 1
    until(lambda: Outcome.DELIVERED in outcomes(broker))
    running.close()
    assert WebhookJournal(broker, "q").latest(WebhookSelection(outcome=Outcome.FAILED)) == []


@pytest.mark.parametrize("status", [301, 304, 401, 404, 422, 500, 503])
def test_every_answer_but_2xx_and_410_is_retried(broker: EmbeddedBroker, site: Site, status: int) -> None:
    site.answer = lambda body, tries: status if tries == 1 else 202
    deliver(broker, range(1))
    running = dispatcher(broker, endpoint(site.url))
    until(lambda: outcomes(broker) == [Outcome.RETRY, Outcome.DELIVERED])
    running.close()


def test_retry_after_holds_all_requests_to_the_endpoint(broker: EmbeddedBroker, site: Site) -> None:
    site.answer = lambda body, tries: (429, "", {"Retry-After": "3600"})
    deliver(broker, range(1))
    running = dispatcher(broker, endpoint(site.url))
    until(lambda: outcomes(broker) == [Outcome.RETRY])
    deliver(broker, range(1, 20), batch=2)
    [only] = attempts(broker)
    assert only.next_at is not None and only.next_at - only.at >= 3_600_000
    running.close()
    assert len(site.requests) == 1


def test_410_disables_the_endpoint_and_enabling_it_sends_what_has_waited(broker: EmbeddedBroker, site: Site) -> None:
    site.answer = lambda body, tries: 410
    deliver(broker, range(1))
    running = dispatcher(broker, endpoint(site.url))
    until(lambda: outcomes(broker) == [Outcome.DISABLED])
    deliver(broker, range(1, 4), batch=2)
    running.close()
    assert len(site.requests) == 1
    [status] = WebhookJournal(broker, "q").endpoints()
    assert (status.disabled, status.waiting, status.unread) == (True, 1, 3)
    site.answer = lambda body, tries: 200
    WebhookJournal(broker, "q").enable("shop")
    dispatcher(broker, endpoint(site.url), epoch=2).close()
    assert sorted(body["n"] for body in site.bodies) == [0, 0, 1, 2, 3]


def test_a_restart_sends_what_was_not_taken_and_nothing_else(broker: EmbeddedBroker, site: Site) -> None:
    deliver(broker, range(5))
    dispatcher(broker, endpoint(NOWHERE), pauses_ms=(1, 1, 1, 60_000)).close()
    deliver(broker, range(5, 8), batch=2)
    running = dispatcher(broker, endpoint(site.url), epoch=2)
    WebhookJournal(broker, "q").redrive(SELECT_ALL)
    until(lambda: outcomes(broker).count(Outcome.DELIVERED) == 8)
    running.close()
    dispatcher(broker, endpoint(site.url), epoch=3).close()
    assert sorted(body["n"] for body in site.bodies) == list(range(8))


def test_a_new_endpoint_starts_with_the_deliveries_after_it(broker: EmbeddedBroker, site: Site) -> None:
    deliver(broker, range(3))
    dispatcher(broker, endpoint(site.url)).close()
    running = dispatcher(broker, endpoint(site.url), endpoint(site.url, "second"), epoch=2)
    deliver(broker, range(3, 4), batch=2)
    until(lambda: outcomes(broker, "second") == [Outcome.DELIVERED])
    running.close()


def test_a_time_range_is_replayed_to_one_endpoint(broker: EmbeddedBroker, site: Site) -> None:
    deliver(broker, range(3))
    running = dispatcher(broker, endpoint(site.url), endpoint(NOWHERE, "dead"), pauses_ms=(3_600_000,))
    until(lambda: outcomes(broker).count(Outcome.DELIVERED) == 3)
    journal = WebhookJournal(broker, "q")
    assert journal.replay(WebhookSelection("shop", since_ms=0, until_ms=1_000)) == 0
    assert journal.replay(WebhookSelection("shop", since_ms=1_000), dry_run=True) == 3
    assert journal.replay(WebhookSelection("shop", since_ms=1_000)) == 3
    until(lambda: outcomes(broker).count(Outcome.DELIVERED) == 6)
    running.close()
    assert len({key for key, _ in site.requests}) == 3


def test_a_later_start_stops_the_dispatcher_of_an_earlier_one(broker: EmbeddedBroker, site: Site) -> None:
    earlier = CheckpointStore(broker, "q")
    dispatcher(broker, endpoint(site.url), epoch=2).close()
    with pytest.raises(MetadataConflict):
        earlier.save(1, 5, {})


def test_a_delivery_that_retention_deleted_is_reported(broker: EmbeddedBroker, site: Site) -> None:
    deliver(broker, range(2))
    running = dispatcher(broker, endpoint(site.url))
    until(lambda: outcomes(broker).count(Outcome.DELIVERED) == 2)
    broker.append(attempts_topic("q"), [Attempt("msg_gone", STEP, "shop", Outcome.REDRIVE, -7, 0).to_record()])
    until(lambda: Outcome.FAILED in outcomes(broker))
    running.close()
    assert "deleted from its topic" in str(attempts(broker)[-1].error)


def test_foreign_records_in_the_topic_of_attempts_are_ignored(broker: EmbeddedBroker, site: Site) -> None:
    deliver(broker, range(1))
    running = dispatcher(broker, endpoint(site.url))
    broker.append(attempts_topic("q"), [LogRecord(b"k", value) for value in (b"[]", b"\xff", b'{"outcome": "x"}')])
    until(lambda: outcomes(broker) == [Outcome.DELIVERED])
    running.close()


def test_a_query_without_webhooks_has_no_journal(broker: EmbeddedBroker) -> None:
    with pytest.raises(NoWebhooks):
        WebhookJournal(broker, "q")
