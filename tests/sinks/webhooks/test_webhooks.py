from __future__ import annotations

import pytest

from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.sinks import WebhookEndpoint
from potok.testing import TestDriver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.mark.parametrize(
    ("endpoints", "options", "why"),
    [
        ("ftp://example.org", {}, "not an HTTP address"),
        ([], {}, "no endpoint"),
        (WebhookEndpoint("https://example.org/a"), {}, "has no secret"),
        (["https://example.org/a", "https://example.org/b"], {}, 'two endpoints are named "example.org"'),
        (WebhookEndpoint("https://example.org", SECRET, name="a/b"), {}, "cannot be named"),
        (
            WebhookEndpoint("https://example.org", SECRET, headers=(("Webhook-Id", "1"),)),
            {},
            "is set by Potok",
        ),
        ("https://example.org", {"concurrency": 0}, "too small"),
        ("https://example.org", {"retention": "1 hour"}, "not retained as long"),
    ],
)
def test_what_can_never_be_sent_is_refused_at_build(endpoints: object, options: dict[str, object], why: str) -> None:
    builder = StreamsBuilder("hooks")
    builder.stream("orders").to_webhook(endpoints, secrets=SECRET, **options)  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match=why) as raised, TestDriver(builder):
        pass
    assert SECRET not in str(raised.value)


def test_a_description_shows_neither_secrets_nor_tokens() -> None:
    builder = StreamsBuilder("hooks")
    builder.stream("orders").to_webhook("https://example.org/hooks?token=abcdefghij", secrets="env:NOT_SET_HERE")
    rendered = builder.describe()
    assert "to_webhook orders.to_webhook.example.org: to https://example.org/hooks, at_least_once" in rendered
    assert "abcdefghij" not in rendered


def test_a_null_value_becomes_a_dead_letter() -> None:
    builder = StreamsBuilder("hooks")
    builder.stream("orders").to_webhook("http://127.0.0.1:9", secrets=SECRET)
    with TestDriver(builder) as driver:
        driver.send("orders", None, key="k")
        driver.run()
        assert [letter.reason for letter in driver.dead_letters()] == ["refused"]
        assert driver.read("hooks-webhooks") == []
