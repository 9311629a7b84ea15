from __future__ import annotations

from pathlib import Path

import pytest

from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.runtime.webhooks.dispatcher import Dispatcher
from potok.runtime.webhooks.records import Attempt, Outcome, attempts_topic
from potok.sinks.webhooks.retry_schedule import RetrySchedule
from potok.sinks.webhooks.webhooks import WebhookEndpoint, WebhookTarget

STEP = "orders.to_webhook"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def attempt(number: int, outcome: Outcome, at: int, endpoint: str = "shop", error: str | None = None) -> Attempt:
    return Attempt(f"msg_{number}", STEP, endpoint, outcome, number, at, 1, 200, error)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A query `hooks` with two deliveries, one of which has failed after a retry."""
    where = str(tmp_path / "data")
    monkeypatch.setattr("potok.cli.state.webhooks.chosen_query", lambda log, query: query or "hooks")
    log = open_broker(f"file:{where}")
    target = WebhookTarget(
        (WebhookEndpoint("http://127.0.0.1:9", (SECRET,), "shop"),), RetrySchedule(), 1, 100, 86_400_000, with_key=False
    )
    Dispatcher(log, "hooks", 1, {STEP: target}).close()
    found = [
        attempt(0, Outcome.DELIVERED, 1_000),
        attempt(1, Outcome.RETRY, 2_000, error="HTTP 500"),
        attempt(1, Outcome.FAILED, 3_000, error="HTTP 500"),
    ]
    log.append(attempts_topic("hooks"), [each.to_record() for each in found])
    log.close()
    return where


def outcomes(data: str) -> list[tuple[str, str]]:
    from potok.runtime.webhooks.records import read_attempts

    log: Broker = open_broker(f"file:{data}")
    end = log.end_offsets(attempts_topic("hooks"))[0]
    found = [(each.id, each.outcome.value) for _, each in read_attempts(log, "hooks", 3, end)]
    log.close()
    return found


def test_the_latest_attempt_of_each_delivery_is_listed(potok, data: str) -> None:
    found = potok("--broker", data, "webhooks", "list", "--json").objects
    assert [(each["id"], each["outcome"]) for each in found] == [("msg_0", "delivered"), ("msg_1", "failed")]
    rendered = potok("--broker", data, "webhooks", "list")
    assert "HTTP 500" in rendered.out
    assert rendered.err.strip() == 'query "hooks": 2 deliveries'


@pytest.mark.parametrize(
    ("words", "identifiers"),
    [
        (("--outcome", "failed"), ["msg_1"]),
        (("--outcome", "retry"), []),
        (("--id", "msg_0"), ["msg_0"]),
        (("--endpoint", "other"), []),
        (("--until", "1970-01-01T00:00:02Z"), ["msg_0"]),
        (("--limit", "1"), ["msg_1"]),
    ],
)
def test_a_list_is_narrowed(potok, data: str, words: tuple[str, ...], identifiers: list[str]) -> None:
    found = potok("--broker", data, "webhooks", "list", *words, "--json").objects
    assert [each["id"] for each in found] == identifiers


def test_failed_deliveries_are_sent_again_by_default(potok, data: str) -> None:
    dry = potok("--broker", data, "webhooks", "redrive", "--dry-run")
    assert dry.err.strip() == 'query "hooks": 1 delivery would be sent again'
    assert outcomes(data) == []
    done = potok("--broker", data, "webhooks", "redrive", "--json").objects
    assert done == [{"query": "hooks", "done": True, "deliveries": 1}]
    assert outcomes(data) == [("msg_1", "redrive")]


def test_an_endpoint_is_enabled_by_name(potok, data: str) -> None:
    assert potok("--broker", data, "webhooks", "enable", "shop").code == 0
    assert outcomes(data) == [("", "enable")]
    wrong = potok("--broker", data, "webhooks", "enable", "shp")
    assert wrong.code != 0
    assert 'no endpoint "shp"' in wrong.err and "it has shop" in wrong.err
    [endpoint] = potok("--broker", data, "webhooks", "endpoints", "--json").objects
    assert (endpoint["endpoint"], endpoint["disabled"]) == ("shop", False)


def test_an_unknown_outcome_is_an_error_and_not_an_empty_list(potok, data: str) -> None:
    assert 'there is no outcome "lost"' in potok("--broker", data, "webhooks", "list", "--outcome", "lost").err
