from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from tests.sinks.rows import deliver, opening, rows_of, typed
from tests.sinks.web import Site, web_server

from potok.errors import TopologyError
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.http.client import MOST_BYTES
from potok.sinks.http.http import HttpTarget
from potok.sinks.sink_spec import Batch, Types

TYPES = Types(typed("string"), None)
NOWHERE = "http://127.0.0.1:9/orders"
"""Port 9 is for what is thrown away: nobody listens there."""


@pytest.fixture
def site() -> Iterator[Site]:
    with web_server() as found:
        yield found


def target(
    url: str, *, batch: int = 1, concurrency: int = 1, give_up_after_ms: int | None = 5_000, **more: Any
) -> HttpTarget:
    headers = tuple(more.get("headers", {}).items())
    return HttpTarget(url, headers, batch, concurrency, 2_000, give_up_after_ms, more.get("with_key", False))


def post(
    made: HttpTarget,
    records: list[tuple[Any, Any]],
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE,
    batch: Batch = Batch(1, 7),
) -> dict[int, str]:
    sink_writer = made.open(opening(TYPES, guarantee))
    try:
        return deliver(made, sink_writer, rows_of(records, TYPES, 100), TYPES, batch)
    finally:
        sink_writer.close()


def numbered(count: int, keys: int = 3) -> list[tuple[Any, Any]]:
    return [(f"k{n % keys}", {"n": n}) for n in range(count)]


def test_each_record_is_posted_as_json_with_the_given_headers_and_a_key_of_its_own(site: Site) -> None:
    assert post(target(site.url, headers={"Authorization": "Bearer x"}), numbered(3)) == {}
    assert site.bodies == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert {headers["Authorization"] for headers in site.headers} == {"Bearer x"}
    assert {headers["Content-Type"] for headers in site.headers} == {"application/json"}
    keys = [key for key, _ in site.requests]
    assert [key.rpartition("/")[0] for key in keys] == [f"q/orders.sink/7/{n}" for n in range(3)]


def test_a_repeated_batch_has_the_same_keys_so_that_a_server_can_recognise_it(site: Site) -> None:
    for epoch in (1, 2):
        post(target(site.url, concurrency=3), numbered(20), batch=Batch(epoch, 7))
    assert len(site.requests) == 40
    assert sorted(body["n"] for body in site.by_key.values()) == list(range(20))


CUT_OFF = {"Content-Length": "5000"}
GARBLED = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize("headers", [CUT_OFF, GARBLED])
def test_a_rejection_that_a_proxy_cut_off_or_garbled_is_still_a_rejection(site: Site, headers: dict[str, str]) -> None:
    site.answer = lambda body, tries: (422, "no such user", headers) if body["n"] == 1 else 200
    refused = post(target(site.url), numbered(3))
    assert list(refused) == [1]
    assert refused[1].startswith("HTTP 422: ")
    assert len(site.requests) == 3


@pytest.mark.parametrize("headers", [CUT_OFF, GARBLED])
def test_an_acceptance_that_was_cut_off_is_tried_again_under_the_same_key(site: Site, headers: dict[str, str]) -> None:
    site.answer = lambda body, tries: (200, "taken", headers) if tries < 2 else 200
    assert post(target(site.url), numbered(1)) == {}
    assert len(site.requests) == 2
    assert len(site.by_key) == 1


def test_a_proxy_that_cuts_off_every_answer_stops_the_query_with_a_message_that_says_so(site: Site) -> None:
    site.answer = lambda body, tries: (200, "taken", CUT_OFF)
    with pytest.raises(DeliveryFailed, match="HTTP 200, but the answer was cut off") as raised:
        post(target(site.url, give_up_after_ms=100), numbered(1))
    assert "IncompleteRead" not in str(raised.value)


def test_a_long_answer_is_not_read_to_its_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = urllib3.HTTPResponse.read

    def counting(answer: urllib3.HTTPResponse, amt: int | None = None, **options: Any) -> bytes:
        data = original(answer, amt, **options)
        read.append(len(data))
        return data

    monkeypatch.setattr(urllib3.HTTPResponse, "read", counting)
    site.answer = lambda body, tries: (200, "x" * 3_000_000)
    assert post(target(site.url), numbered(2)) == {}
    assert len(site.requests) == 2
    assert sum(read) <= 2 * (MOST_BYTES + 1)


def test_another_record_under_the_same_number_has_another_key(site: Site) -> None:
    post(target(site.url), [("a", 1)])
    post(target(site.url), [("a", 2)])
    assert sorted(site.by_key.values()) == [1, 2]


def test_records_of_one_key_arrive_in_order_and_no_more_requests_are_under_way_than_allowed(site: Site) -> None:
    together = threading.Barrier(2, timeout=10)
    waited: list[int] = []

    def answer(body: Any, tries: int) -> int:
        if len(waited) < 2:
            waited.append(body["n"])
            together.wait()
        return 200

    site.answer = answer
    assert post(target(site.url, concurrency=3), numbered(60, keys=7)) == {}
    assert 2 <= site.most_at_once <= 3
    for key in range(7):
        numbers = [body["n"] for body in site.bodies if body["n"] % 7 == key]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("trouble", [500, 503, 429, 408, 409, (503, "busy", {"Retry-After": "0"}), None])
def test_what_may_pass_is_tried_again_under_the_same_key(site: Site, trouble: Any) -> None:
    site.answer = lambda body, tries: trouble if tries < 3 else 201
    assert post(target(site.url), numbered(2)) == {}
    assert [body["n"] for body in site.bodies] == [0, 0, 0, 1, 1, 1]
    assert len(site.by_key) == 2


def test_what_a_server_refuses_is_set_aside_with_its_status_and_the_beginning_of_its_answer(site: Site) -> None:
    site.answer = lambda body, tries: (422, "no such user " + "x" * 5_000) if body["n"] == 1 else 200
    refused = post(target(site.url, concurrency=2), numbered(3))
    assert list(refused) == [1]
    assert refused[1].startswith("HTTP 422: no such user xxx")
    assert len(refused[1]) < 600
    assert len(site.requests) == 3


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_an_answer_about_the_address_stops_the_query_at_once(site: Site, status: int) -> None:
    site.answer = lambda body, tries: (status, "", {"Location": "/elsewhere"} if status == 302 else {})
    with pytest.raises(DeliveryFailed, match=f"HTTP {status}") as caught:
        post(target(site.url), numbered(3))
    assert 'sink "orders.sink"' in caught.value.message
    assert len(site.requests) == 1


def test_a_server_that_stays_away_stops_the_query_after_a_while() -> None:
    with pytest.raises(DeliveryFailed, match="no connection"):
        post(target(NOWHERE, give_up_after_ms=120, concurrency=2), numbered(5))


@pytest.mark.parametrize("trouble", [503, None])
def test_a_server_that_is_away_for_longer_may_be_tried_again_with_its_batch(
    site: Site, trouble: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("potok.sinks.http.writer.BRIEFLY_MS", 1)
    site.answer = lambda body, tries: trouble if tries < 3 else 200
    made = target(site.url, give_up_after_ms=None)
    for _ in range(2):
        with pytest.raises(DeliveryFailed) as raised:
            post(made, numbered(1))
        assert raised.value.passing
    assert post(made, numbered(1)) == {}
    assert len(site.by_key) == 1


def test_a_request_can_set_its_own_timeout(site: Site) -> None:
    site.answer = lambda body, tries: 503
    with pytest.raises(DeliveryFailed) as raised:
        post(target(site.url, give_up_after_ms=1), numbered(1))
    assert not raised.value.passing


def test_one_thread_that_gives_up_ends_the_others_too(site: Site) -> None:
    site.answer = lambda body, tries: 500
    with pytest.raises(DeliveryFailed, match="HTTP 500"):
        post(target(site.url, give_up_after_ms=150, concurrency=3), numbered(300, keys=50))
    assert len(site.requests) < 50


def test_an_invalid_record_among_several_of_one_request_is_found(site: Site) -> None:
    site.answer = lambda body, tries: (400, "bad") if any(item["n"] == 4 for item in body) else 200
    refused = post(target(site.url, batch=3), numbered(8))
    assert refused == {4: "HTTP 400: bad"}
    assert site.bodies[0] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert [{"n": 3}] in site.bodies and [{"n": 5}] in site.bodies
    assert [key.split("/")[3] for key, _ in site.requests] == ["0+3", "3+3", "3", "4", "5", "6+2"]


def test_the_body_may_hold_key_and_time(site: Site) -> None:
    post(target(site.url, with_key=True), [("a", None), (None, 1)])
    assert site.bodies == [{"key": "a", "timestamp": 100, "value": None}, {"key": None, "timestamp": 101, "value": 1}]
    assert list(post(target(site.url), [("a", None)])) == [0]


@pytest.mark.parametrize("trouble", [500, 429, 404, None])
def test_at_most_once_sends_nothing_twice_and_sets_aside_what_may_not_have_arrived(site: Site, trouble: Any) -> None:
    site.answer = lambda body, tries: trouble if body["n"] == 0 else 200
    refused = post(target(site.url), numbered(3), Guarantee.AT_MOST_ONCE)
    assert list(refused) == [0]
    assert [body["n"] for body in site.bodies] == [0, 1, 2]


def test_at_most_once_sets_aside_what_could_not_be_sent() -> None:
    refused = post(target(NOWHERE, give_up_after_ms=60), numbered(2), Guarantee.AT_MOST_ONCE)
    assert list(refused) == [0, 1]
    assert "no connection" in refused[0]


@pytest.mark.parametrize(
    ("made", "hint"),
    [
        (target("ftp://example.org/x"), "https://"),
        (target("example.org"), "https://"),
        (target(NOWHERE, batch=0), "batch=1"),
        (target(NOWHERE, concurrency=0), "concurrency=1"),
        (target(NOWHERE, headers={"idempotency-key": "1"}), "leave it out"),
        (target(NOWHERE, headers={"X-City": "Рига"}), "Latin-1"),
        (target(NOWHERE, headers={"X-City": "Riga\r\nX-Other: 1"}), "Latin-1"),
        (target(NOWHERE, headers={"X City": "Riga"}), "X-Source"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(made: HttpTarget, hint: str) -> None:
    with pytest.raises(TopologyError) as caught:
        made.check(TYPES, Guarantee.EXACTLY_ONCE)
    assert hint in caught.value.hint


def test_no_secret_is_shown() -> None:
    made = target("https://user:secret@example.org:8443/orders?token=secret", headers={"Authorization": "secret"})
    assert made.label == "https://example.org:8443/orders"
    assert "secret" not in repr(made)
