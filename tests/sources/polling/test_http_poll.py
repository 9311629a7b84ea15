"""Polling an HTTP endpoint."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from potok.errors import TopologyError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources import Gateway, HttpPoll, Overload
from tests.log.waiting import until
from tests.sources.test_appender import AwayBroker, values


class Endpoint:
    """A server with one resource, and what it was asked."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 200, b"[]", dict[str, str]()
        self.asked: list[dict[str, str]] = []
        self.unchanged = 0
        self.url = ""

    def answers(self, body: Any, **headers: str) -> None:
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.status = 200


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    found = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(dict(self.headers))
            status, headers, body = found.status, found.headers, found.body
            if "ETag" in headers and self.headers.get("If-None-Match") == headers["ETag"]:
                found.unchanged += 1
                status, body = 304, b""
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}/orders"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@contextmanager
def polling(broker: EmbeddedBroker, endpoint: Endpoint, **options: Any) -> Iterator[Gateway]:
    spec = HttpPoll(**{"name": "h", "topic": "t", "url": endpoint.url, "every": "5 ms"} | options)
    with Gateway(broker, [spec], stop_timeout_s=0.2) as gateway:
        yield gateway


def test_each_element_lands_once_however_often_it_is_in_the_answer(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.answers([{"id": 1, "user": "ann"}, {"id": 2, "user": "bob"}])
    with polling(EmbeddedBroker(tmp_path), endpoint, id="body:id", key="body:user") as gateway:
        until(lambda: gateway.counts("h").duplicates >= 2)
        endpoint.answers([{"id": 2, "user": "bob"}, {"id": 3, "user": "eve"}])
        until(lambda: gateway.counts("h").landed == 3)
    with polling(EmbeddedBroker(tmp_path), endpoint, id="body:id", key="body:user") as gateway:
        until(lambda: gateway.counts("h").duplicates >= 2)
        assert gateway.counts("h").landed == 0
    assert [json.loads(each)["id"] for each in values(EmbeddedBroker(tmp_path))] == [1, 2, 3]
    [batch] = EmbeddedBroker(tmp_path).read("t", 0, 0, 1)
    assert batch["key"].to_pylist() == [b"ann"]


def test_an_answer_that_has_not_changed_is_not_read_again_also_after_a_restart(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    endpoint.answers([1, 2], ETag='"v1"', Last_Modified="Wed, 21 Oct 2026 07:28:00 GMT")
    with polling(EmbeddedBroker(tmp_path), endpoint) as gateway:
        until(lambda: endpoint.unchanged >= 2)
        assert gateway.counts("h").landed == 2
    assert endpoint.asked[1]["If-Modified-Since"] == "Wed, 21 Oct 2026 07:28:00 GMT"
    first = len(endpoint.asked)
    with polling(EmbeddedBroker(tmp_path), endpoint):
        until(lambda: len(endpoint.asked) > first)
        assert endpoint.asked[first]["If-None-Match"] == '"v1"'
        endpoint.answers([3], ETag='"v2"')
        until(lambda: len(values(EmbeddedBroker(tmp_path))) == 3)


def test_an_answer_that_did_not_land_is_read_again_after_a_restart(tmp_path: Path, endpoint: Endpoint) -> None:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    endpoint.answers([1, 2], ETag='"v1"')
    with polling(broker, endpoint):
        assert broker.tried.wait(10)
    broker.there.set()
    with polling(broker, endpoint) as gateway:
        until(lambda: gateway.counts("h").landed == 2)
    assert values(broker) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("body", "options", "expected"),
    [
        (b'{"a":1}\n\n{"a":2}\n', {"body": "ndjson"}, [b'{"a":1}', b'{"a":2}']),
        (b'{"a":[1,2]}', {"body": "json"}, [b'{"a":[1,2]}']),
        (b'{"data":{"items":[1,2]}}', {"items": "data.items"}, [b"1", b"2"]),
        (b"any\xff", {"body": "raw"}, [b"any\xff"]),
    ],
)
def test_an_answer_is_split_as_its_body_says(
    tmp_path: Path, endpoint: Endpoint, body: bytes, options: dict[str, Any], expected: list[bytes]
) -> None:
    endpoint.answers(gzip.compress(body), ETag='"v"', Content_Encoding="gzip")
    with polling(EmbeddedBroker(tmp_path), endpoint, **options) as gateway:
        until(lambda: gateway.counts("h").landed == len(expected))
    assert values(EmbeddedBroker(tmp_path)) == expected


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (503, b"", "the endpoint responded with 503"),
        (200, b"<html>", "the response cannot become records: the body is not JSON"),
        (200, b"[1," + b"[" * 300 + b"]" * 300 + b"]", "the response cannot become records: element 2 cannot be"),
        (200, b"[" + b"1," * 5_000 + b"1]", "the response is larger than 1000 bytes"),
    ],
)
def test_an_endpoint_that_answers_nonsense_is_reported_and_asked_again(
    tmp_path: Path, endpoint: Endpoint, status: int, body: bytes, problem: str
) -> None:
    endpoint.answers(body)
    endpoint.status = status
    with polling(EmbeddedBroker(tmp_path), endpoint, max_body=1_000) as gateway:
        until(lambda: problem in (gateway.status()[0].problem or ""))
        endpoint.answers([1], ETag='"v"')
        until(lambda: gateway.counts("h").landed == 1)
        until(lambda: gateway.status()[0].problem is None)


def test_a_header_may_be_a_secret(tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERS_TOKEN", "Bearer t0p-secret")
    headers = ("Authorization: env:ORDERS_TOKEN", "Accept: application/json")
    with polling(EmbeddedBroker(tmp_path), endpoint, headers=headers):
        until(lambda: endpoint.asked)
    assert (endpoint.asked[0]["Authorization"], endpoint.asked[0]["Accept"]) == (
        "Bearer t0p-secret",
        "application/json",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "ftp://host/"}, "the url is not one of HTTP"),
        ({"cron": "every day"}, '"every day" is not a cron expression'),
        ({"body": "raw", "id": "body:id"}, 'a body that is "raw" has no fields for id'),
        ({"items": "a", "body": "json"}, "items needs an array"),
        ({"headers": ("Authorization",)}, 'the header "Authorization" has no value'),
        ({"overload": Overload(when_full="drop_newest")}, "an endpoint is polled"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        HttpPoll(**{"name": "h", "topic": "t", "url": "http://localhost/"} | options).check()
