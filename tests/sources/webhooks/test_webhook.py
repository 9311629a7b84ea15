"""Webhooks over HTTP: what is answered, and what has landed by then."""

from __future__ import annotations

import asyncio
import gc
import gzip
import hashlib
import hmac
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from certificates import Authority
from potok.errors import PotokError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources import Gateway, Overload, Webhook
from tests.log.waiting import until
from tests.sources.test_appender import AwayBroker, values


@contextmanager
def serving(broker: EmbeddedBroker, **options: Any) -> Iterator[tuple[Gateway, httpx.Client]]:
    spec = Webhook(**{"name": "w", "topic": "t", "listen": "127.0.0.1:0", "timeout": "60 s"} | options)
    with Gateway(broker, [spec], stop_timeout_s=1.0) as gateway:
        url = f"http://{gateway.address('w')}"
        with httpx.Client(base_url=url, timeout=60) as client:
            yield gateway, client


@pytest.fixture
def away(tmp_path: Path) -> AwayBroker:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    return broker


def keys(broker: EmbeddedBroker) -> list[bytes | None]:
    ends = broker.end_offsets("t")
    return [key for p, end in ends.items() for batch in broker.read("t", p, 0, end) for key in batch["key"].to_pylist()]


def test_the_body_is_in_the_log_when_the_request_is_answered(tmp_path: Path) -> None:
    with serving(EmbeddedBroker(tmp_path)) as (gateway, client):
        response = client.post("/", content=b'{"a": 1}')
        assert (response.status_code, response.json()) == (202, {"landed": 1})
        assert values(gateway.broker) == [b'{"a": 1}']


def test_arrays_and_lines_become_several_records_with_their_keys(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    with serving(broker, body="array", key="body:user.id") as (_, client):
        assert client.post("/", json=[{"user": {"id": 7}}, {"user": {"id": "x"}}]).json() == {"landed": 2}
        assert keys(broker) == [b"7", b"x"]
        assert client.post("/", json=[{"user": {"id": 7}}, {}]).status_code == 400
    with serving(broker, body="ndjson", key="header:X-Key") as (_, client):
        assert client.post("/", content=b"1\n2\n", headers={"X-Key": "k"}).json() == {"landed": 2}
    assert keys(broker) == [b"7", b"x", b"k", b"k"]


def test_requests_that_are_not_a_webhook_are_refused_and_counted(tmp_path: Path) -> None:
    with serving(EmbeddedBroker(tmp_path), path="/hook", max_body=100) as (gateway, client):
        assert client.post("/other").status_code == 404
        assert client.get("/hook").headers["allow"] == "POST"
        assert client.post("/hook", content=b"{").status_code == 400
        assert client.post("/hook", content=b"1" * 101).status_code == 413
        assert client.post("/hook", content=iter([b"1" * 60, b"1" * 60])).status_code == 413
        bomb = gzip.compress(b"1" * 1_000)
        assert client.post("/hook", content=bomb, headers={"content-encoding": "gzip"}).status_code == 413
        assert client.post("/hook", content=b"x", headers={"content-encoding": "br"}).status_code == 400
        counts = gateway.counts("w")
        assert counts.refused == {"not_found": 1, "method": 1, "malformed": 2, "too_large": 3}
        assert (counts.received, values(gateway.broker)) == (0, [])


def test_the_signature_is_that_of_the_raw_body(tmp_path: Path) -> None:
    body = gzip.compress(b'{"a":1}')
    signature = "sha256=" + hmac.new(b"k", body, hashlib.sha256).hexdigest()
    headers = {"X-Hub-Signature-256": signature, "content-encoding": "gzip"}
    with serving(EmbeddedBroker(tmp_path), signature="github", secrets=("old", "k")) as (gateway, client):
        assert client.post("/", content=body, headers=headers).status_code == 202
        assert client.post("/", content=gzip.compress(b'{"a":2}'), headers=headers).status_code == 401
        assert client.post("/", content=b'{"a":1}').status_code == 401
        assert values(gateway.broker) == [b'{"a":1}']
        assert gateway.counts("w").refused == {"signature": 2}


def test_a_repeated_id_does_not_land_twice_and_another_body_conflicts(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    with serving(broker, id="body:id") as (gateway, client):
        assert client.post("/", json={"id": 1}).json() == {"landed": 1}
        assert client.post("/", json={"id": 1}).json() == {"landed": 0, "duplicate": True}
        assert client.post("/", json={"id": 1, "more": True}).status_code == 409
        assert client.post("/", json={"id": 2}).json() == {"landed": 1}
        assert client.post("/", json={}).status_code == 400
        counts = gateway.counts("w")
        assert (counts.received, counts.landed, counts.duplicates) == (3, 2, 1)
        assert counts.buffered == 0


def test_ids_are_remembered_by_the_log_across_restarts(tmp_path: Path) -> None:
    for expected in ({"landed": 1}, {"landed": 0, "duplicate": True}):
        with serving(EmbeddedBroker(tmp_path), id="header:X-Id") as (_, client):
            assert client.post("/", json=1, headers={"X-Id": "a"}).json() == expected


def test_long_ids_take_no_more_memory_than_short_ones(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    with serving(broker, id="body:id") as (gateway, client):
        tracemalloc.start()
        try:
            for number in range(100):
                assert client.post("/", json={"id": f"{number}-" + "x" * 500_000}).json() == {"landed": 1}
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] < 20_000_000
        finally:
            tracemalloc.stop()
    for _ in range(2):
        with serving(broker, id="body:id") as (gateway, client):
            same, other = {"id": "7-" + "x" * 500_000}, {"id": "7-" + "x" * 500_000, "more": 1}
            assert client.post("/", json=same).json() == {"landed": 0, "duplicate": True}
            assert client.post("/", json=other).status_code == 409
            assert gateway.counts("w").landed == 0


def test_ids_are_forgotten_beyond_their_number(tmp_path: Path) -> None:
    with serving(EmbeddedBroker(tmp_path), id="header:X-Id", max_ids=2) as (_, client):
        for identifier in "abc":
            client.post("/", json=1, headers={"X-Id": identifier})
        assert client.post("/", json=1, headers={"X-Id": "c"}).json() == {"landed": 0, "duplicate": True}
        assert client.post("/", json=1, headers={"X-Id": "a"}).json() == {"landed": 1}


def test_the_same_id_twice_at_a_time_lands_once(away: AwayBroker) -> None:
    with serving(away, id="header:X-Id") as (gateway, client):

        async def both() -> list[httpx.Response]:
            async with httpx.AsyncClient(base_url=client.base_url, timeout=60) as other:
                sent = [other.post("/", json=1, headers={"X-Id": "a"}) for _ in range(5)]
                waiting = asyncio.gather(*sent)
                while gateway.status()[0].state["connections"] < 5 or not away.tried.is_set():
                    await asyncio.sleep(0.01)
                away.there.set()
                return await waiting

        found = [response.json() for response in asyncio.run(both())]
        assert sorted(each["landed"] for each in found) == [0, 0, 0, 0, 1]
        assert values(away) == [b"1"]


@pytest.mark.parametrize(("policy", "status"), [("block", 429), ("reject", 503)])
def test_a_full_buffer_asks_the_sender_to_repeat_the_request(away: AwayBroker, policy: Any, status: int) -> None:
    overload = Overload(max_records=1, when_full=policy)
    with serving(away, overload=overload, timeout="0.2 s") as (gateway, client):
        first = client.post("/", json=1)
        assert (first.status_code, first.headers["retry-after"]) == (503, "1")
        second = client.post("/", json=2)
        assert (second.status_code, second.headers["retry-after"]) == (status, "1")
        assert gateway.counts("w").refused == {"timeout": 1, "full": 1}
        away.there.set()
        until(lambda: gateway.counts("w").landed == 1)
        assert values(away) == [b"1"]


def test_a_dropped_record_is_answered_with_503(away: AwayBroker) -> None:
    with serving(away, overload=Overload(max_records=1, when_full="drop_oldest"), timeout="30 s") as (gateway, client):
        answers: list[int] = []
        first = threading.Thread(target=lambda: answers.append(client.post("/", json=1).status_code))
        first.start()
        away.tried.wait(10)
        # The first is being appended and cannot be dropped, so each newer one is dropped.
        assert client.post("/", json=2).status_code == 503
        away.there.set()
        first.join(10)
        assert answers == [202]
        assert gateway.counts("w").lost == {"dropped_newest": 1}


@pytest.mark.parametrize("policy", ["block", "reject", "drop_newest", "drop_oldest"])
def test_the_invariant_holds_when_clients_flood_a_small_buffer(away: AwayBroker, policy: Any) -> None:
    overload, total = Overload(max_records=5, max_bytes=50_000, when_full=policy), 400
    body = b'"%b"' % (b"x" * 20_000)
    most = 0
    with serving(away, overload=overload) as (gateway, client):

        async def flood() -> list[int]:
            nonlocal most
            limits = httpx.Limits(max_connections=200)
            async with httpx.AsyncClient(base_url=client.base_url, timeout=60, limits=limits) as other:
                sent = [asyncio.create_task(other.post("/", content=body)) for _ in range(total)]
                while not all(each.done() for each in sent):
                    counts = gateway.counts("w")
                    most = max(most, counts.buffered)
                    if counts.received + sum(counts.refused.values()) >= total // 4:
                        away.there.set()
                    await asyncio.sleep(0.001)
                return [each.result().status_code for each in sent]

        statuses = asyncio.run(flood())
        counts = gateway.counts("w")
    asked = 429 if policy == "block" else 503
    assert set(statuses) == {202, asked}
    assert counts.received == counts.landed + sum(counts.lost.values())
    assert counts.received + sum(counts.refused.values()) == total
    assert counts.landed == statuses.count(202) == len(values(away))
    assert sum(counts.lost.values()) + sum(counts.refused.values()) == statuses.count(asked)
    asks = policy in ("block", "reject")
    assert set(counts.refused) == ({"full"} if asks else set())
    assert set(counts.lost) <= (set() if asks else {"dropped_newest", "dropped_oldest"})
    assert 0 < most <= 2, "50,000 bytes have room for two bodies"


def test_clients_that_leave_or_stall_do_not_stop_the_others(tmp_path: Path) -> None:
    with serving(EmbeddedBroker(tmp_path)) as (gateway, client):
        host, _, port = gateway.address("w").rpartition(":")
        stalled = [socket.create_connection((host, int(port))) for _ in range(50)]
        for number, each in enumerate(stalled):
            each.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12"[: 20 + number])
        for each in stalled[::2]:
            each.close()
        assert client.post("/", json=1).status_code == 202
        for each in stalled[1::2]:
            each.close()
        assert client.post("/", json=2).status_code == 202
        assert values(gateway.broker) == [b"1", b"2"]


@pytest.mark.parametrize("head", [b"\x00\x01\x02\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", b"GET " + b"x" * 100_000])
def test_bytes_that_are_not_http_close_their_connection_only(tmp_path: Path, head: bytes) -> None:
    with serving(EmbeddedBroker(tmp_path)) as (gateway, client):
        host, _, port = gateway.address("w").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as bad:
            bad.sendall(head)
            answer = bad.recv(100)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
        assert client.post("/", json=1).status_code == 202


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "hook"}, "does not start with /"),
        ({"body": "xml"}, 'there is no body "xml"'),
        ({"id": "cookie:a"}, "names no header and no field"),
        ({"id": "body:id", "body": "array"}, "an array has no field for id"),
        ({"key": "body:id", "body": "raw"}, 'a body that is "raw" has no fields for key'),
        ({"signature": "github"}, "needs a secret"),
        ({"max_body": 0}, "max_body is too small"),
        ({"timeout": "0 s"}, "timeout must be longer than 0"),
        ({"topic": "a/b"}, '"a/b" cannot be the name of a topic'),
    ],
)
def test_options_that_cannot_work_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PotokError, match=message), serving(EmbeddedBroker(tmp_path), **options):
        pass


def test_secrets_are_not_shown() -> None:
    assert "hidden" not in repr(Webhook(name="w", topic="t", listen="127.0.0.1:0", secrets=("hidden",)))


@pytest.mark.parametrize("http2", [False, True])
def test_a_listener_with_a_certificate_receives_over_tls(tmp_path: Path, http2: bool) -> None:
    authority, cert, key = Authority(), tmp_path / "w.crt", tmp_path / "w.key"
    authority.write(cert, key)
    broker = EmbeddedBroker(tmp_path / "log")
    with serving(broker, tls_cert=str(cert), tls_key=str(key)) as (gateway, plain):
        with httpx.Client(verify=authority.client(), http2=http2, timeout=60) as client:
            response = client.post(f"https://{gateway.address('w')}/", content=b'{"a": 1}')
            assert (response.status_code, response.http_version) == (202, "HTTP/2" if http2 else "HTTP/1.1")
        with pytest.raises(httpx.TransportError):
            plain.post("/", content=b'{"a": 2}')
        assert values(broker) == [b'{"a": 1}']


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PotokError, match="belong together"):
        Webhook(name="w", topic="t", listen="127.0.0.1:0", tls_cert="w.crt").check()
