"""Whatever is sent to a route: one of our answers comes back, and never an internal error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import pytest
from fastapi import FastAPI
from hypothesis import given, note
from hypothesis import strategies as st
from tests import hostile

from potok.server.access.limits import Limits
from potok.server.app import create_app
from server.conftest import SHOP, sell
from statements.playing import Play
from statements.test_hostile import STATEMENTS, filled

NAMES = [
    *("orders", "ORDERS", "totals", "TOTALS", "hourly", "nothing", "", ".", "..", "%00", "\ud800", "é"),
    *("a" * 3_000, "_commands"),
    *("`totals`", "totals;", "u1", "u1/u2", "[1,2]", '{"a":1}', "null", "9" * 5_000, "-1", "1e999", "NaN"),
    *("pause", "CTAS_TOTALS_1"),
]
ROUTES = [
    *("/tables", "/tables/{name}", "/tables/{name}/{name}", "/tables/{name}/changes", "/tables/{name}/{name}/{name}"),
    *("/streams", "/streams/{name}", "/topics", "/topics/{name}/records", "/queries", "/queries/{name}"),
    "/queries/{name}/{name}",
    *("/sql", "/ksql", "/query", "/query-stream", "/close-query", "/inserts-stream", "/status"),
    *("/status/{name}", "/clusterStatus"),
    *("/info", "/healthcheck", "/openapi.json", "/metrics", "/{name}"),
]
PARAMETERS = [
    *("at", "as_of", "from", "to", "limit", "prefix", "after", "last_event_id", "where", "offset", "window"),
    *("start", "end"),
]
SMALL: list[Any] = [
    *(None, True, 0, -1, 1.5, 2**63, 10**400, float("nan"), "", "a", "\ud800", "SHOW TABLES;", "x" * 5_000),
    *([], {}, [1], {"a": {}}, {"value": None}, [{"key": None}], {"sql": "SELECT 1;"}),
    {"key": "u1", "value": {"ID": "o1", "USER_ID": 7, "AMOUNT": 1e400}},
]
FIELDS = [
    *("sql", "ksql", "properties", "streamsProperties", "sessionVariables", "variables"),
    *("commandSequenceNumber", "queryId", "target"),
    *("key", "value", "records", "timestamp", "partition", "headers", "requestProperties"),
]
HEADERS = [
    *("accept", "content-type", "last-event-id", "idempotency-key", "authorization", "range", "if-none-match"),
    *("content-encoding", "x"),
]
HEADER_VALUES = [
    *(b"", b"*/*", b"application/json", b"application/vnd.ksqlapi.delimited.v1"),
    *(b"application/json; charset=\xff", b"text/event-stream"),
    *(b"\xff\xfe", b"Bearer \xff", b"Basic !!", b"9" * 4_000, b"0:1,1:2", b"gzip", b"bytes=0-"),
    *(b"multipart/form-data; boundary=", b"-1"),
]


def name(random: Random) -> str:
    return quote(random.choice(NAMES), safe=random.choice(["", "/"]), errors="surrogatepass")


def body(random: Random) -> bytes:
    kind = random.random()
    if kind < 0.1:
        return random.choice(hostile.BYTES)
    if kind < 0.5:
        text = filled(random, random.choice(STATEMENTS))
        reported: Any = {random.choice(["sql", "ksql"]): text, random.choice(FIELDS): random.choice(SMALL)}
    elif kind < 0.9:
        reported = {random.choice(FIELDS): random.choice(SMALL) for _ in range(random.randrange(4))}
    else:
        reported = random.choice(SMALL)
    text = json.dumps(reported)
    lines = [text, *(json.dumps(random.choice(SMALL)) for _ in range(random.randrange(3)))]
    return "\n".join(lines if random.random() < 0.3 else [text]).encode()


Header = tuple[bytes, bytes]


async def ask(
    app: FastAPI, method: str, path: str, query: str, headers: list[Header], sent: bytes
) -> tuple[int, bytes]:
    """One request of somebody who hangs up as soon as all is sent."""
    arrived = [{"type": "http.request", "body": sent, "more_body": False}]
    answered: list[dict[str, Any]] = []

    async def receive() -> Any:
        return arrived.pop() if arrived else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answered.append(message)

    where = {"path": unquote_to_bytes(path).decode("utf-8", "replace"), "raw_path": path.encode(), "root_path": ""}
    who = {"client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8088), "state": {}}
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "method": method}
    scope |= {**where, **who, "query_string": query.encode(), "headers": [(b"host", b"127.0.0.1:8088"), *headers]}
    await asyncio.wait_for(app(scope, receive, send), 60)
    starts = [message for message in answered if message["type"] == "http.response.start"]
    return (starts[0]["status"] if starts else 0), b"".join(message.get("body", b"") for message in answered)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    play = Play(Path(tmp_path_factory.mktemp("shop")))
    play.do(SHOP)
    sell(play, ("o1", "u1", 1.0), ("o2", "u2", 2.5))
    made = create_app(play.database, limits=Limits(seconds=20))
    yield made
    made.state.site.close()
    play.close()


@hostile.explored(60)
@given(random=st.randoms(use_true_random=False))
def test_every_request_gets_one_of_our_answers(app: FastAPI, random: Random) -> None:
    async def talk() -> None:
        for _ in range(15):
            path = random.choice(ROUTES)
            while "{name}" in path:
                path = path.replace("{name}", name(random), 1)
            method = random.choice(["GET", "GET", "POST", "POST", "DELETE", "PUT", "HEAD", "OPTIONS"])
            query = "&".join(f"{random.choice(PARAMETERS)}={name(random)}" for _ in range(random.choice([0, 0, 1, 2])))
            headers = [
                (random.choice(HEADERS).encode(), random.choice(HEADER_VALUES))
                for _ in range(random.choice([0, 0, 1, 2]))
            ]
            sent = body(random) if method in ("POST", "PUT", "DELETE") else b""
            note(f"{method} {path[:200]}?{query[:200]} {headers} {sent[:300]!r}")
            status, reported = await ask(app, method, path, query, headers, sent)
            assert status < 500 or status in (501, 503), reported[:500]
            assert b"internal error" not in reported.lower()

    asyncio.run(talk())
