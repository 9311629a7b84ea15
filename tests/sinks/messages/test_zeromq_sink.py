"""Send over ZeroMQ sockets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq

from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.messages.zeromq import ZeroMqTarget
from potok.sinks.sink_spec import Batch, Types
from potok.sources import Gateway, ZeroMq
from potok.testing import TestDriver
from tests.log.waiting import until
from tests.sinks.rows import deliver, opening, rows_of, typed
from tests.sources.test_appender import values

NUMBERS = Types(typed("string"), typed("bigint"))


def target_of(endpoint: str, **options: Any) -> ZeroMqTarget:
    given: dict[str, Any] = {
        "pattern": "push",
        "bind": False,
        "frames": ("value",),
        "high_water_mark": 10_000,
        "give_up_after_ms": 200,
        "with_key": False,
    }
    return ZeroMqTarget(endpoint, **given | options)


@contextmanager
def sending(target: ZeroMqTarget, **options: Any) -> Iterator[Any]:
    found: Any = target.open(opening(NUMBERS, Guarantee.AT_MOST_ONCE, **options))
    try:
        yield found
    finally:
        found.close()


@contextmanager
def pulling() -> Iterator[tuple[Any, str]]:
    with zmq.Context() as context, context.socket(zmq.PULL) as socket:
        socket.setsockopt(zmq.RCVTIMEO, 10_000)
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        yield socket, f"tcp://127.0.0.1:{port}"


def numbered(count: int) -> Any:
    return rows_of([(f"k{number % 2}", number) for number in range(count)], NUMBERS)


def test_records_are_messages_in_their_order() -> None:
    with pulling() as (socket, endpoint):
        builder = StreamsBuilder("shop")
        builder.stream("orders", value="n bigint").to_zeromq(endpoint, frames=("key", "value"))
        with TestDriver(builder) as driver:
            driver.send("orders", key="a", value={"n": 1})
            driver.send("orders", key=None, value={"n": 2})
            driver.send("orders", key="b", value={"n": 3})
            driver.run()
            assert [socket.recv_multipart() for _ in range(2)] == [[b"a", b'{"n":1}'], [b"b", b'{"n":3}']]
            assert [each.error for each in driver.dead_letters()] == ["the record has no key: set one with select_key"]


def test_nobody_who_pulls_makes_dead_letters_of_what_was_not_sent_and_numbers_have_no_gap() -> None:
    with pulling() as (socket, endpoint):
        target = target_of(endpoint, frames=("sender", "number", "value"))
        with sending(target) as writer:
            assert deliver(target, writer, numbered(2), NUMBERS, Batch(1, 1)) == {}
            assert [socket.recv_multipart() for _ in range(2)] == [
                [b"q/orders.sink/1", b"1", b"0"],
                [b"q/orders.sink/1", b"2", b"1"],
            ]
            socket.unbind(endpoint)
            socket.close()
            until(lambda: len(deliver(target, writer, numbered(2), NUMBERS, Batch(1, 2))) == 2)
    target = target_of("tcp://127.0.0.1:9")
    with sending(target) as writer:
        failures = deliver(target, writer, numbered(2), NUMBERS, Batch(1, 1))
    assert set(failures) == {0, 1} and "not sent: nobody reads" in failures[0]


def test_what_is_queued_is_sent_when_the_query_ends() -> None:
    with pulling() as (socket, endpoint):
        target = target_of(endpoint)
        with sending(target) as writer:
            assert deliver(target, writer, numbered(5_000), NUMBERS, Batch(1, 1)) == {}
        assert [int(socket.recv()) for _ in range(5_000)] == list(range(5_000))


def test_a_slow_peer_is_waited_for() -> None:
    with pulling() as (socket, endpoint):
        socket.setsockopt(zmq.RCVHWM, 10)
        target = target_of(endpoint, high_water_mark=10, give_up_after_ms=30_000)
        rows = rows_of([("k", "x" * 5_000)] * 2_000, Types(NUMBERS.key, typed("string")))
        with sending(target) as writer:
            done: list[Any] = []
            types = Types(NUMBERS.key, typed("string"))
            thread = threading.Thread(target=lambda: done.append(deliver(target, writer, rows, types, Batch(1, 1))))
            thread.start()
            for _ in range(2_000):
                socket.recv()
            thread.join(10)
        assert done == [{}]


def test_a_listener_counts_what_a_subscriber_missed(tmp_path: Path) -> None:
    target = target_of("ipc://" + str(tmp_path / "pub"), pattern="pub", bind=True, frames=("sender", "number", "value"))
    with sending(target) as writer:
        options: dict[str, Any] = {"pattern": "sub", "sender": "frame:0", "sequence": "frame:1"}
        spec = ZeroMq(name="z", topic="t", connect=(target.endpoint,), **options)
        with Gateway(EmbeddedBroker(tmp_path / "data"), [spec]) as gateway:

            def subscribed() -> bool:
                deliver(target, writer, numbered(1), NUMBERS, Batch(1, 1))
                return gateway.counts("z").landed > 0

            until(subscribed)
            deliver(target, writer, numbered(1_000), NUMBERS, Batch(1, 2))
            until(lambda: values(gateway.broker)[-1:] == [b"999"])
            assert gateway.counts("z").missing == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endpoint": "localhost:5555"}, "is not an endpoint"),
        ({"pattern": "pull"}, 'there is no pattern "pull"'),
        ({"frames": ("key",)}, "needs a frame with the value"),
        ({"frames": ("topic", "value")}, 'there is no frame "topic"'),
        ({"high_water_mark": 0}, "high_water_mark is too small"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    builder = StreamsBuilder("shop")
    builder.stream("orders").to_zeromq(**{"endpoint": "tcp://127.0.0.1:5555"} | options)
    with pytest.raises(TopologyError, match=message), TestDriver(builder):
        pass


def test_an_endpoint_that_cannot_be_bound_is_found_before_there_are_records() -> None:
    with pulling() as (_, endpoint), pytest.raises(DeliveryFailed, match="Address already in use"):
        target_of(endpoint, bind=True).open(opening(NUMBERS, Guarantee.AT_MOST_ONCE))
