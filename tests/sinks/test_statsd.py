"""Metrics over UDP, as a StatsD server reads them."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Batch, Types
from potok.sinks.statsd import NOT_A_NAME, NOT_A_NUMBER, StatsdTarget, StatsdWriter
from potok.sources import Gateway, Overload, Statsd
from potok.testing import TestDriver
from tests.log.waiting import until
from tests.sinks.rows import deliver, opening, prepared, rows_of, typed
from tests.sources.test_appender import values

DYNAMIC = Types(None, None)
TYPED = Types(typed("string"), typed("type string, value double, rate double, relative boolean"))
NUMBERS = Types(typed("string"), typed("double"))


def target_of(address: str = "127.0.0.1:8125", **options: Any) -> StatsdTarget:
    given: dict[str, Any] = {"metric": "{key}", "type": "c", "max_datagram": 1_432}
    return StatsdTarget(address, **given | options)


def lines_of(target: StatsdTarget, records: list[tuple[Any, Any]], types: Types) -> tuple[list[str], dict[int, str]]:
    rows, failures = prepared(target, rows_of(records, types), types)
    assert not isinstance(rows.value, list)
    return rows.value.to_pylist(), failures


@contextmanager
def server() -> Iterator[tuple[socket.socket, str]]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(10)
        yield opened, f"127.0.0.1:{opened.getsockname()[1]}"


def test_a_number_is_a_metric_of_the_type_that_the_sink_names() -> None:
    expected = ["shop.a:1.5|ms", "shop.b:-2|ms"]
    assert lines_of(target_of(metric="shop.{key}", type="ms"), [("a", 1.5), ("b", -2)], DYNAMIC) == (expected, {})
    assert lines_of(target_of(metric="shop.{key}", type="ms"), [("a", 1.5), ("b", -2.0)], NUMBERS) == (expected, {})


@pytest.mark.parametrize("types", [DYNAMIC, TYPED])
def test_a_value_with_fields_says_what_differs(types: Types) -> None:
    records = [
        ("a", {"type": "g", "value": 3.5, "relative": True}),
        ("a", {"type": "g", "value": -3.5, "relative": True}),
        ("a", {"type": "g", "value": -4.5}),
        ("a", {"type": "c", "value": 2.5, "rate": 0.1}),
        ("a", {"value": 1.5, "rate": 1.0}),
    ]
    lines, failures = lines_of(target_of(), records, types)
    assert lines == ["a:+3.5|g", "a:-3.5|g", "a:0|g\na:-4.5|g", "a:2.5|c|@0.1", "a:1.5|c"]
    assert failures == {}


def test_members_of_sets_are_text() -> None:
    records: list[tuple[Any, Any]] = [("a", "ann"), ("a", {"type": "s", "member": "bob"}), ("a", "x|y"), ("a", 7)]
    lines, failures = lines_of(target_of(type="s"), records, DYNAMIC)
    assert (lines, list(failures)) == (["a:ann|s", "a:bob|s"], [2, 3])


def test_what_is_no_metric_becomes_a_dead_letter() -> None:
    records: list[tuple[Any, Any]] = [
        ("a b", 1),
        ("a|c", 1),
        ("a.", 1),
        (None, 1),
        ("a", None),
        ("a", "seven"),
        ("a", float("nan")),
        ("a", True),
        ("a", {"type": "q", "value": 1}),
        ("a", {"value": 1, "rate": 0}),
        ("a", {"value": 1, "rate": "often"}),
        ("x" * 2_000, 1),
        ("good", 1),
    ]
    lines, failures = lines_of(target_of(), records, DYNAMIC)
    assert lines == ["good:1|c"]
    assert [failures[row] for row in (0, 1, 2)] == [NOT_A_NAME] * 3
    assert failures[3] == "the record has no key: set one with select_key"
    assert [failures[row] for row in (4, 5, 6, 7)] == [NOT_A_NUMBER] * 4
    assert failures[8] == "the type is not one of c, g, ms, h, C, s"
    assert [failures[row] for row in (9, 10)] == ["the rate is not between 0 and 1"] * 2
    assert failures[11] == "the metric is larger than a datagram of 1432 bytes"


def test_a_datagram_has_as_many_lines_as_fit() -> None:
    with server() as (opened, address):
        target = target_of(address, max_datagram=64)
        writer: Any = target.open(opening(DYNAMIC, Guarantee.AT_MOST_ONCE))
        records: list[tuple[Any, Any]] = [(f"name-{number:03}", number % 10) for number in range(50)]
        assert deliver(target, writer, rows_of(records, DYNAMIC), DYNAMIC, Batch(1, 1)) == {}
        writer.close()
        found = [opened.recv(65_536) for _ in range(10)]
    assert [len(each.split(b"\n")) for each in found] == [5] * 10
    assert {len(each) for each in found} == {64}
    assert b"\n".join(found).split() == [f"{name}:{value}|c".encode() for name, value in records]


def test_the_listener_of_the_gateway_reads_what_the_sink_sends(tmp_path: Path) -> None:
    made = Statsd(name="s", topic="t", listen="127.0.0.1:0", overload=Overload(when_full="drop_oldest"), sets=True)
    with Gateway(EmbeddedBroker(tmp_path), [made]) as gateway:
        builder = StreamsBuilder("metrics")
        builder.stream("values").to_statsd(gateway.address("s"))
        sent = [
            {"type": "c", "value": 1, "rate": 0.5, "relative": False},
            {"type": "g", "value": 2.5, "rate": 1, "relative": True},
            {"type": "ms", "value": 320, "rate": 1, "relative": False},
            {"type": "s", "member": "ann", "rate": 1},
        ]
        with TestDriver(builder) as driver:
            for value in sent:
                driver.send("values", key="m", value=value)
            driver.run()
        until(lambda: gateway.counts("s").landed == len(sent))
        assert [json.loads(each) for each in values(gateway.broker)] == sent


def test_nobody_who_listens_costs_the_metrics_and_their_number_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with server() as (_, address):
        pass
    target = target_of(address, max_datagram=64)
    writer: Any = target.open(opening(DYNAMIC, Guarantee.AT_MOST_ONCE))
    rows = rows_of([(f"name-{number}", 1) for number in range(2_000)], DYNAMIC)
    until(lambda: deliver(target, writer, rows, DYNAMIC, Batch(1, 1)) == {} and bool(caplog.records))
    writer.close()
    assert f"nobody listens at {address}" in caplog.text


def test_an_unknown_host_is_found_before_there_are_records() -> None:
    with pytest.raises(DeliveryFailed, match="rejected batch 1"):
        target_of("nowhere.invalid:8125").open(opening(DYNAMIC, Guarantee.AT_MOST_ONCE))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"address": "localhost"}, "is not an address"),
        ({"type": "q"}, 'there is no type "q" in StatsD'),
        ({"metric": "a b"}, "cannot be the name of a metric"),
        ({"max_datagram": 10}, "max_datagram=10 is out of range"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    builder = StreamsBuilder("metrics")
    builder.stream("values").to_statsd(**{"address": "127.0.0.1:8125"} | options)
    with pytest.raises(TopologyError, match=message), TestDriver(builder):
        pass


def test_of_the_addresses_of_a_name_one_of_ipv4_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with server() as (_, address):
        port = int(address.rpartition(":")[2])
        udp = (socket.SOCK_DGRAM, 17, "")
        found = [(socket.AF_INET6, *udp, ("::1", port, 0, 0)), (socket.AF_INET, *udp, ("127.0.0.1", port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        writer = target_of(f"localhost:{port}").open(opening(DYNAMIC))
        assert isinstance(writer, StatsdWriter)
        assert writer._socket.getpeername() == ("127.0.0.1", port)
        writer.close()
