"""On real Kafka: against Spark's own connector by hand, and against Kafka Streams."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import orders
from benchmarks.bench import LIMIT_S, Bench, Row, console, speed
from benchmarks.measure import wait_for_quiet
from potok.log.kafka.development.jars import KAFKA_VERSION, Bundle, Module, fetch
from potok.log.kafka.development.server import KafkaServer
from potok.log.open import open_broker
from potok.settings import Settings

USERS = 100_000
PARTITIONS = 4

STREAMS = Bundle(
    f"Kafka Streams {KAFKA_VERSION}",
    f"kafka-streams-{KAFKA_VERSION}",
    (
        Module("org.apache.kafka", "kafka-streams", KAFKA_VERSION),
        Module("org.slf4j", "slf4j-nop", "1.7.36"),
    ),
)

_PROGRAM = Path(__file__).parent / "kafka_streams" / "Totals.java"


@contextmanager
def server(bench: Bench, records: int | None = None) -> Iterator[str]:
    """A Kafka with orders in it; each row has one of its own, so that none pays for what others left behind."""
    directory = bench.directory / f"kafka-{time.monotonic_ns()}"
    kafka = KafkaServer(directory, Settings.load().cache_path)
    status = kafka.start(0)
    try:
        url = f"{status.url}?home={directory / 'home'}"
        write(url, bench.records if records is None else records)
        yield url
    finally:
        kafka.stop()
        shutil.rmtree(directory, ignore_errors=True)


def write(url: str, records: int) -> None:
    console.print(f"[dim]writing {records:,} orders of {USERS:,} users to Kafka[/]")
    broker = open_broker(url)
    broker.create_topic("orders", PARTITIONS)
    for batch in orders.batches(records, USERS):
        broker.append("orders", batch)


def bootstrap_of(url: str) -> str:
    return url.removeprefix("kafka://").partition("?")[0]


def by_hand(bench: Bench) -> Row:
    with server(bench) as url:
        return bench.at_least(
            "Kafka, typed topology, against Spark's connector by hand",
            lambda: speed(bench.potok("typed", url, bench.batch)),
            lambda: speed(bench.handwritten_kafka("count_and_sum", bootstrap_of(url), bench.batch)),
            1.5,
        )


def exactly_once(bench: Bench) -> Row:
    return _against_streams(bench, "exactly-once", "typed_out", "exactly_once_v2", 1.3)


def at_least_once(bench: Bench) -> Row:
    return _against_streams(bench, "at-least-once", "typed_out_at_least_once", "at_least_once", 1.0)


def _against_streams(bench: Bench, name: str, what: str, guarantee: str, bar: float) -> Row:
    with server(bench) as url:
        return bench.at_least(
            f"Kafka, {name}, against Kafka Streams",
            lambda: speed(bench.potok(what, url, bench.batch)),
            lambda: streams(bench, bootstrap_of(url), guarantee),
            bar,
        )


def guarantees(bench: Bench) -> Row:
    with server(bench) as url:
        return bench.at_least(
            "Kafka, exactly-once against at-least-once",
            lambda: speed(bench.potok("typed_out", url, bench.batch)),
            lambda: speed(bench.potok("typed_out_at_least_once", url, bench.batch)),
            0.85,
        )


def streams(bench: Bench, bootstrap: str, guarantee: str) -> float:
    """Records a second of the same program in Kafka Streams, after the first batch."""
    wait_for_quiet()
    console.print(f"[dim]running Kafka Streams {guarantee}[/]")
    state = bench.directory / f"streams-state-{time.monotonic_ns()}"
    out = f"totals-{time.monotonic_ns()}"
    open_broker(f"kafka://{bootstrap}?home={bench.directory / 'streams-home'}").create_topic(out, PARTITIONS)
    arguments = [bootstrap, guarantee, str(bench.records), str(min(bench.batch, bench.records // 4)), str(state), out]
    said, _ = started(bench, arguments).communicate(timeout=LIMIT_S)
    rates = [line.split()[1] for line in said.decode().splitlines() if line.startswith("RATE ")]
    if not rates:
        raise RuntimeError(f"Kafka Streams failed:\n{said.decode()[-3000:]}")
    return float(rates[0])


def started(bench: Bench, arguments: list[str]) -> subprocess.Popen[bytes]:
    """The program of Kafka Streams, compiled when it is first wanted."""
    jars = fetch(STREAMS, Settings.load().cache_path)
    classes = bench.made("kafka-streams", lambda path: _compile(jars, path))
    command = ["java", "-Xmx2g", "-cp", ":".join([classes, *map(str, jars)]), "Totals", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def _compile(jars: list[Path], path: Path) -> None:
    if shutil.which("javac") is None:
        raise RuntimeError("this row compiles a Java program: install a JDK of version 17 or later")
    path.mkdir(parents=True)
    subprocess.run(["javac", "-cp", ":".join(map(str, jars)), "-d", str(path), str(_PROGRAM)], check=True)
