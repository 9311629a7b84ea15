"""The gateway: webhooks that are durable when they are answered, datagrams, and messages of RabbitMQ.

Gateway and clients are processes of their own. Each row is a rate against the bar that we hold ourselves to: no
other side stores what it receives before it answers.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tests.servers import rabbitmq_server

from benchmarks.bench import Bench, Row, console
from benchmarks.measure import wait_for_quiet
from benchmarks.row_client import post
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sinks.guarantee import Guarantee
from potok.sinks.messages.rabbitmq import RabbitMqTarget
from potok.sinks.sink_spec import Batch, Opening, Rows, SinkWriter, Types

CLIENTS, EACH = 64, 1_000
BODY = b'{"order_id":"o-1","user_id":"user_001","amount":120.5,"note":"' + b"x" * 960 + b'"}'
RATE, P99_MS = 5_000.0, 50.0
DATAGRAMS, DATAGRAM = 1_000_000, b"page.views:1|c|@0.1"
DATAGRAMS_PER_CORE = 150_000.0
MESSAGES, MESSAGES_PER_SECOND = 60_000, 20_000.0
LIMIT_S = 120.0

_GATEWAY = "from potok.cli.main import main; main()"
_SENDER = """
import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect((sys.argv[1], int(sys.argv[2])))
for _ in range(int(sys.argv[3])):
    sender.send(sys.argv[4].encode())
"""


def webhook_rate(bench: Bench) -> Row:
    """Requests of 1 KB by 64 clients, each with one request under way."""
    tries = [len(times) / seconds for times, seconds in _posts(bench)]
    return _row("webhook to durable topic, 64 clients, 1 KB", tries, "requests/s", RATE)


def webhook_p99(bench: Bench) -> Row:
    tries = [sorted(times)[int(len(times) * 0.99)] for times, _ in _posts(bench)]
    return _row("webhook to durable topic, p99", tries, "ms", P99_MS, smaller=True)


def rabbitmq(bench: Bench) -> Row:
    """Messages that wait in a queue, from the first that landed to the last; each is acknowledged after that."""
    tries = []
    with rabbitmq_server() as server:
        for number in range(bench.repeat):
            queue = f"q{number}"
            _publish(server.url, queue)
            options = f'type = "rabbitmq"\nurl = "{server.url}"\nqueue = "{queue}"\nid = "message_id"'
            with _gateway(bench, options, listen=False) as (_, _, broker):
                tries.append(_landing_rate(broker))
    return _row("RabbitMQ to durable topic", tries, "messages/s", MESSAGES_PER_SECOND)


def _publish(url: str, queue: str) -> None:
    target = RabbitMqTarget(url, queue, None, "", True, True, None, False)
    types = Types(None, None)
    writer = target.open(Opening("bench", queue, Guarantee.AT_LEAST_ONCE, types, 1, 0))
    assert isinstance(writer, SinkWriter)
    value = {"order_id": "o-1", "user_id": "user_001", "amount": 120.5, "note": "x" * 100}
    rows = Rows(["k"] * MESSAGES, [value] * MESSAGES, np.zeros(MESSAGES, np.int64))
    ready = target.prepare(rows, types)
    writer.deliver(Batch(1, 1), Rows(ready.key, ready.value, rows.timestamp))
    writer.close()


def _landing_rate(broker: EmbeddedBroker) -> float:
    """Wait until every message has landed; return the rate after the first ones."""
    end, first, began = time.monotonic() + LIMIT_S, 0, 0.0
    while (found := sum(broker.end_offsets("t").values())) < MESSAGES:
        if time.monotonic() > end:
            raise RuntimeError(f"{found} of {MESSAGES} messages have landed")
        if not first and found:
            first, began = found, time.perf_counter()
        time.sleep(0.005)
    return (MESSAGES - first) / (time.perf_counter() - began)


def datagrams(bench: Bench) -> Row:
    return _datagrams(bench, "udp", "UDP datagrams landed per second of a core")


def metrics(bench: Bench) -> Row:
    return _datagrams(bench, "statsd", "StatsD datagrams landed per second of a core")


def _datagrams(bench: Bench, kind: str, what: str) -> Row:
    """Datagrams that landed for each second of a core that the gateway used; all others must have been counted."""
    tries = []
    for _ in range(bench.repeat):
        options = f'type = "{kind}"\noverload = {{ when_full = "drop_oldest" }}'
        with _gateway(bench, options) as (process, address, broker):
            host, _, port = address.rpartition(":")
            began = _cpu_seconds(process.pid)
            command = [sys.executable, "-c", _SENDER, host, port, str(DATAGRAMS), DATAGRAM.decode()]
            subprocess.run(command, check=True, timeout=LIMIT_S)
            counts = _settled(process, host, int(port))
            used = _cpu_seconds(process.pid) - began
        found = sum(broker.end_offsets("t").values())
        if found != counts["landed"]:
            raise RuntimeError(f"{counts['landed']} datagrams landed, and {found} are in the topic")
        tries.append(found / used)
    return _row(what, tries, "records/s", DATAGRAMS_PER_CORE)


def _posts(bench: Bench) -> Iterator[tuple[list[float], float]]:
    for _ in range(bench.repeat):
        with _gateway(bench, 'type = "webhook"\ntimeout = "60 s"') as (_, address, broker):
            port = int(address.rpartition(":")[2])
            post(port, CLIENTS, EACH // 10, BODY)
            began = time.perf_counter()
            times = post(port, CLIENTS, EACH, BODY)
            seconds = time.perf_counter() - began
        found, sent = sum(broker.end_offsets("t").values()), CLIENTS * (EACH + EACH // 10)
        if found != sent:
            raise RuntimeError(f"{sent} requests were acknowledged, and {found} records are in the topic")
        yield times, seconds


@contextmanager
def _gateway(
    bench: Bench, options: str, *, listen: bool = True
) -> Iterator[tuple[subprocess.Popen[str], str, EmbeddedBroker]]:
    wait_for_quiet()
    console.print("[dim]running a gateway[/]")
    directory = bench.directory / f"gateway-{time.monotonic_ns()}"
    directory.mkdir()
    file = directory / "gateway.toml"
    place = 'listen = "127.0.0.1:0"\n' if listen else ""
    file.write_text(f'broker = "{directory / "data"}"\n[m]\ntopic = "t"\n{place}{options}\n')
    command = [sys.executable, "-c", _GATEWAY, "gateway", str(file), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        try:
            yield process, address, EmbeddedBroker(Path(directory / "data"))
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def _settled(process: subprocess.Popen[str], host: str, port: int) -> dict[str, int]:
    """Wait until every datagram has landed or is counted: the kernel reports what it dropped with the next one."""
    assert process.stdout is not None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(DATAGRAM, (host, port))
    for line in process.stdout:
        counts: dict[str, int] = json.loads(line)["counts"]
        if counts["received"] + counts["kernel_dropped"] >= DATAGRAMS + 1 and not counts["buffered"]:
            return counts
    raise RuntimeError("the gateway ended before all datagrams were counted")


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _row(what: str, tries: list[float], unit: str, bar: float, *, smaller: bool = False) -> Row:
    ratios = [each / bar for each in tries]
    return Row(what, statistics.median(tries), bar, unit, 1.0, smaller_is_better=smaller, tries=ratios)
