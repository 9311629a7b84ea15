"""ZeroMQ and NNG: messages of PUSH and PUB sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pynng
import pytest
import zmq

from potok.errors import PotokError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources import Gateway, Nng, Overload, ZeroMq
from tests.log.waiting import until
from tests.sources.test_appender import AwayBroker, values

Send = Callable[[bytes], None]
KINDS = {"zeromq": ZeroMq, "nng": Nng}


@contextmanager
def receiving(broker: EmbeddedBroker, kind: str, **options: Any) -> Iterator[Gateway]:
    given = {"name": "s", "topic": "t", "pattern": "pull", "listen": "tcp://127.0.0.1:0"}
    with Gateway(broker, [KINDS[kind](**given | options)]) as gateway:
        yield gateway


@contextmanager
def sender(kind: str, pattern: str, address: str) -> Iterator[Send]:
    """A PUSH or PUB socket that is connected."""
    if kind == "nng":
        made = pynng.Push0(send_timeout=10_000) if pattern == "pull" else pynng.Pub0(send_buffer_size=1_000)
        with made as nng:
            nng.dial(f"tcp://{address}", block=True)
            yield nng.send
        return
    with zmq.Context() as context, context.socket(zmq.PUSH if pattern == "pull" else zmq.PUB) as socket:
        socket.setsockopt(zmq.SNDHWM, 10 if pattern == "pull" else 1_000)
        socket.setsockopt(zmq.SNDTIMEO, 10_000)
        socket.setsockopt(zmq.LINGER, 10_000)
        socket.connect(f"tcp://{address}")
        yield socket.send


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_pushed_lands_in_its_order(tmp_path: Path, kind: str) -> None:
    with (
        receiving(EmbeddedBroker(tmp_path), kind, key="body:user") as gateway,
        sender(kind, "pull", gateway.address("s")) as send,
    ):
        for number in range(2_000):
            send(json.dumps({"user": f"u{number % 3}", "n": number}).encode())
        until(lambda: gateway.counts("s").landed == 2_000)
        assert [json.loads(each)["n"] for each in values(gateway.broker)] == list(range(2_000))
        [batch] = gateway.broker.read("t", 0, 0, 2)
        assert batch["key"].to_pylist() == [b"u0", b"u1"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_subscriber_receives_what_starts_as_it_asked_and_counts_what_is_missing(tmp_path: Path, kind: str) -> None:
    numbers = [1, 2, 3, 7, 8, 10, 1, 2]
    with (
        receiving(
            EmbeddedBroker(tmp_path), kind, pattern="sub", subscribe=('{"n"',), sequence="body:n", sender="body:from"
        ) as gateway,
        sender(kind, "sub", gateway.address("s")) as send,
    ):
        assert gateway.counts("s").missing == 0

        def subscribed() -> bool:
            send(b'{"n":0,"from":"probe"}')
            return gateway.counts("s").landed > 0

        until(subscribed)
        send(b"something else")
        for number in numbers:
            send(b'{"n":%d,"from":"a"}' % number)
        send(b'{"n":1,"from":"b"}')
        until(lambda: values(gateway.broker)[-1] == b'{"n":1,"from":"b"}')
        assert gateway.counts("s").missing == 3 + 1
    landed = [json.loads(each) for each in values(EmbeddedBroker(tmp_path))]
    assert [each["n"] for each in landed if each["from"] == "a"] == numbers


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_no_sender_counts_to_end_nothing(tmp_path: Path, kind: str) -> None:
    numbers = ["9" * 5_000, *["0", "9" * 18] * 10, "-1", "1e9", '"\u0661"', "null", "[" * 2_000]
    with (
        receiving(EmbeddedBroker(tmp_path), kind, sequence="body:n") as gateway,
        sender(kind, "pull", gateway.address("s")) as send,
    ):
        for number in numbers:
            send(f'{{"n":{number}}}'.encode())
        until(lambda: gateway.counts("s").landed == len(numbers))
        assert gateway.counts("s").missing == (1 << 63) - 1
        assert orjson.dumps(gateway.counts("s"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_buffer_lets_those_who_push_wait(tmp_path: Path, kind: str) -> None:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    total = 20_000
    done, landed = threading.Event(), threading.Event()

    def push(address: str) -> None:
        with sender(kind, "pull", address) as send:
            for number in range(total):
                send(b"%d" % number + b"x" * 4_000)
            done.set()
            # NNG drops what it has not sent when its socket is closed.
            landed.wait(60)

    with receiving(broker, kind, overload=Overload(max_records=100), high_water_mark=10) as gateway:
        threading.Thread(target=push, args=(gateway.address("s"),), daemon=True).start()
        assert broker.tried.wait(10)
        assert not done.wait(0.2)
        assert gateway.counts("s").received <= 1_100
        broker.there.set()
        until(lambda: gateway.counts("s").landed == total, 60)
        landed.set()
        assert gateway.counts("s").lost == {}


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest"])
@pytest.mark.parametrize("kind", KINDS)
def test_under_a_flood_everything_has_landed_or_is_counted(tmp_path: Path, kind: str, policy: Any) -> None:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    with (
        receiving(broker, kind, overload=Overload(max_records=50, when_full=policy)) as gateway,
        sender(kind, "pull", gateway.address("s")) as send,
    ):
        for number in range(2_000):
            send(b"%d" % number)
        until(lambda: gateway.counts("s").received == 2_000)
        broker.there.set()
        until(lambda: not gateway.counts("s").buffered)
        counts = gateway.counts("s")
        assert counts.received == counts.landed + sum(counts.lost.values())
        assert counts.landed == len(values(broker))


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_that_is_too_large_ends_its_connection_and_the_others_land(tmp_path: Path, kind: str) -> None:
    with receiving(EmbeddedBroker(tmp_path), kind, max_message=1_000) as gateway:
        with sender(kind, "pull", gateway.address("s")) as good:
            good(b"first")
            until(lambda: gateway.counts("s").landed == 1)
            with sender(kind, "pull", gateway.address("s")) as hostile:
                hostile(b"x" * 1_001)
                good(b"second")
                until(lambda: gateway.counts("s").landed == 2)
        assert values(gateway.broker) == [b"first", b"second"]


def test_the_frames_of_a_zeromq_message_are_named_by_their_numbers(tmp_path: Path) -> None:
    options = {"key": "frame:0", "sequence": "frame:1"}
    with (
        receiving(EmbeddedBroker(tmp_path), "zeromq", **options) as gateway,
        zmq.Context() as context,
        context.socket(zmq.PUSH) as socket,
    ):
        socket.connect(f"tcp://{gateway.address('s')}")
        for number in (b"1", b"5"):
            socket.send_multipart([b"k", number, b"body"])
        until(lambda: gateway.counts("s").landed == 2)
        assert gateway.counts("s").missing == 3
        [batch] = gateway.broker.read("t", 0, 0, 1)
        assert (batch["key"].to_pylist(), batch["value"].to_pylist()) == ([b"k"], [b"body"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": "push"}, 'there is no pattern "push"'),
        ({"listen": None}, "there is no endpoint"),
        ({"listen": "127.0.0.1:1"}, '"127.0.0.1:1" is not an endpoint'),
        ({"listen": "tcp://no.such.host.invalid:1"}, "cannot listen on tcp://no.such.host.invalid:1"),
        ({"sequence": "header:n"}, 'sequence = "header:n" names no part'),
        ({"overload": Overload(when_full="reject")}, "the protocol cannot reject a message"),
    ],
)
def test_options_that_cannot_work_are_refused(tmp_path: Path, kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PotokError, match=message), receiving(EmbeddedBroker(tmp_path), kind, **options):
        pass
