"""What the sink does with answers that a healthy OpenSearch does not give. The server is a stand-in, which only plays
back answers; `test_opensearch.py` runs against a real one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.sinks.rows import deliver, opening, rows_of, typed

from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.opensearch.opensearch import OpenSearchTarget
from potok.sinks.sink_spec import Batch, Failures, Types
from potok.testing import TestDriver

TYPES = Types(typed("string"), typed("n bigint"))
Answer = tuple[int, Any]
RECORDS: list[tuple[Any, Any]] = [("a", {"n": 1}), ("b", {"n": 2})]


def items(*statuses: int) -> dict[str, Any]:
    bad = {"error": {"type": "rejected", "reason": "no"}}
    return {"items": [{"index": {"status": status, **(bad if status >= 300 else {})}} for status in statuses]}


@contextmanager
def playing(bulk: Callable[[int, list[dict[str, Any]]], Answer]) -> Iterator[tuple[str, list[list[str]]]]:
    """A server that answers bulk requests as it is given: with the number of the request and its actions."""
    sent: list[list[str]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, found = 200, {}
            if "_bulk" in self.path:
                metas = [json.loads(line) for line in body.splitlines()[::2]]
                sent.append([meta["index"]["_id"] for meta in metas])
                status, found = bulk(len(sent), metas)
            data = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_POST = do_PUT = do_GET = do_HEAD = answer

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal of the tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", sent
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def put(url: str, guarantee: Guarantee = Guarantee.AT_LEAST_ONCE, give_up_after_ms: int | None = 3_000) -> Failures:
    target = OpenSearchTarget(url, "orders", (), 100_000, 2_000, give_up_after_ms)
    sink_writer = target.open(opening(TYPES, guarantee))
    try:
        return deliver(target, sink_writer, rows_of(RECORDS, TYPES), TYPES, Batch(1, 1))
    finally:
        sink_writer.close()


def test_only_the_items_that_were_put_off_are_sent_again() -> None:
    with playing(lambda n, metas: (200, items(*((429, 200) if n == 1 else (201,))))) as (url, sent):
        assert put(url) == {}
    assert sent == [["a", "b"], ["a"]]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_request_that_was_put_off_is_sent_again(status: int) -> None:
    with playing(lambda n, metas: (status, {}) if n == 1 else (200, items(200, 200))) as (url, sent):
        assert put(url) == {}
    assert sent == [["a", "b"]] * 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((200, b"<html>"), "not JSON"),
        ((200, {"items": []}), "not one of OpenSearch"),
        ((200, {"items": [{"index": {"status": "x"}}, {}]}), "not one of OpenSearch"),
        ((200, []), "not one of OpenSearch"),
        ((401, {"error": "who are you"}), "HTTP 401: who are you"),
        ((200, items(200, 403)), "rejected: no"),
        ((200, items(200, 503)), "put off 1 documents"),
    ],
)
def test_an_answer_that_is_none_stops_the_query_instead_of_losing_records(answer: Answer, why: str) -> None:
    with playing(lambda n, metas: answer) as (url, _), pytest.raises(DeliveryFailed, match=why):
        put(url, give_up_after_ms=50)


def test_at_most_once_repeats_nothing() -> None:
    with playing(lambda n, metas: (503, {"error": "busy"})) as (url, sent):
        assert put(url, Guarantee.AT_MOST_ONCE).keys() == {0, 1}
    assert sent == [["a", "b"]]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"url": "localhost:9200"}, "not an HTTP address"),
        ({"index": "Orders"}, "cannot be the name of an index"),
        ({"index": "_all"}, "cannot be the name of an index"),
        ({"bulk_bytes": 0}, "too small"),
    ],
)
def test_what_can_never_be_written_is_refused_at_build(options: dict[str, Any], why: str) -> None:
    builder = StreamsBuilder("search")
    builder.stream("orders").to_opensearch(**{"url": "http://127.0.0.1:9", "index": "orders", **options})
    with pytest.raises(TopologyError, match=why), TestDriver(builder):
        pass
