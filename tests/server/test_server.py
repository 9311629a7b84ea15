from __future__ import annotations

import json
import random
import socket

import httpx
import pytest

from potok.server.access.limits import Limits
from potok.server.access.tokens import Tokens
from potok.server.app_server import CannotListen
from potok.server.errors import OpenToAll
from potok.server.server import Server
from server.conftest import sell
from statements.playing import Play

TOKENS = Tokens.load(environ={"POTOK_TOKENS": "admin=long-enough-for-a-token"})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com"])
def test_without_tokens_it_listens_on_this_machine_alone(play: Play, host: str) -> None:
    with pytest.raises(OpenToAll) as caught:
        Server(play.database, host, 0)
    assert "tokens" in caught.value.hint


def test_with_tokens_it_listens_anywhere(play: Play) -> None:
    with Server(play.database, "0.0.0.0", 0, tokens=TOKENS) as server:
        address = f"http://127.0.0.1:{server.port}"
        assert httpx.get(f"{address}/tables").status_code == 401
        token = {"Authorization": "Bearer long-enough-for-a-token"}
        assert httpx.get(f"{address}/tables", headers=token).status_code == 200


def test_a_port_in_use_is_reported(play: Play) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(CannotListen, match="in use"):
            Server(play.database, port=other.getsockname()[1])


def test_it_can_be_served_again_after_it_ended(shop: Play) -> None:
    for _ in range(2):
        with Server(shop.database, port=0) as server:
            assert httpx.get(f"{server.url}/tables").status_code == 200


def test_http_2_is_used_with_clients_that_start_with_its_preface(server: Server, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.5))
    with httpx.Client(base_url=server.url, http1=False, http2=True, timeout=30) as client:
        answer = client.get("/tables/totals/ann")
        assert (answer.http_version, answer.json()["N"]) == ("HTTP/2", 1)
        with client.stream("POST", "/query-stream", json={"sql": "SELECT id FROM orders EMIT CHANGES;"}) as push:
            lines = push.iter_lines()
            next(lines)
            shop.do("INSERT INTO orders (id) VALUES ('x');")
            assert json.loads(next(lines)) == ["x"]


@pytest.mark.parametrize(
    "started", [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 40, b"\x16\x03\x01", b"\r\n\r\n", b"PRI"]
)
def test_bytes_that_are_not_a_request_end_their_connection_and_nothing_else(server: Server, started: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as raw:
        raw.sendall(started)
        raw.shutdown(socket.SHUT_WR)
        raw.settimeout(30)
        while raw.recv(4096):
            pass
    assert httpx.get(f"{server.url}/info").status_code == 200


def test_an_answer_that_takes_too_long_is_ended(shop: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    held = threading.Event()
    with Server(shop.database, port=0, limits=Limits(seconds=0.05)) as server:
        reads = server.app.state.site.reads
        monkeypatch.setattr(reads, "in_range", lambda *_: held.wait(30) and [])
        answer = httpx.get(f"{server.url}/tables/totals")
        held.set()
    assert answer.status_code == 503
    assert "0.05 seconds" in answer.json()["detail"]


PIECES = [
    "SELECT", "*", "FROM", "orders", "totals", "WHERE", "user_id", "=", "'x'", "EMIT CHANGES", "LIMIT 1", ";", "(", ")",
    "CREATE STREAM", "AS", "GROUP BY", "1", "${x}", "`", "'", "--", "/*", "DROP", "INSERT INTO", "VALUES", "\x00", "ü",
]  # fmt: skip


def test_random_statements_are_answered_and_never_by_a_crash(client: httpx.Client) -> None:
    generator = random.Random(7)
    for _ in range(150):
        text = " ".join(generator.choices(PIECES, k=generator.randint(1, 9)))
        path = generator.choice(["/ksql", "/sql", "/query", "/query-stream"])
        body = {"ksql": text, "sql": text, "properties": {"auto.offset.reset": generator.choice(["latest", 3])}}
        with client.stream("POST", path, json=body) as answer:
            assert answer.status_code in (200, 400, 404, 409, 503), (path, text, answer.read())


def test_random_bodies_are_answered_and_never_by_a_crash(client: httpx.Client) -> None:
    generator = random.Random(8)
    paths = ["/ksql", "/sql", "/query", "/query-stream", "/inserts-stream", "/close-query", "/topics/orders/records"]
    bodies = [
        b"{}",
        b"[]",
        b"null",
        b'{"sql":[]}',
        b'{"ksql":{}}',
        b'{"target":1}\n{',
        b'[{"value":{}}]',
        b'"x"',
        b"1e999",
    ]
    for _ in range(100):
        body = generator.choice([*bodies, generator.randbytes(generator.randint(0, 40))])
        answer = client.post(generator.choice(paths), content=body)
        assert answer.status_code in (200, 201, 400), answer.text
