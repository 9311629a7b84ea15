"""`kill -9` in the middle of one program in Faust and in Potok: what they count, and when output comes again.

Faust has its first `FAUST_RECORDS` orders of the topic, and its own way to restart. Then the topic is filled up for
Potok, with two records in the middle that are no orders: they must be dead letters, and all others counted once.
"""

from __future__ import annotations

import time

from confluent_kafka import TopicPartition

from benchmarks import kafka
from benchmarks.bench import LIMIT_S, Bench, Row, console
from benchmarks.faust_rate import FAUST_RECORDS, fill, filled
from benchmarks.faust_truth import check, counted_by_faust, listener, truth
from benchmarks.faust_worker import FAUST, POTOK, Place, Worker, place, working
from benchmarks.measure import wait_for_quiet
from benchmarks.orders import BEGIN_MS
from potok.log.open import open_broker
from potok.records.log_record import LogRecord

FIRST_OUTPUT_S = 9.0
INTO_A_BATCH_S = 0.3
QUIET_S = 3.0
BROKEN = (b'{"order_id": "order-', b'{"order_id": "x", "user_id": "user-1", "amount": "much", "items": []}')


def kill(bench: Bench) -> Row:
    records = max(bench.records, 4 * FAUST_RECORDS)
    with filled(bench, FAUST_RECORDS) as url:
        theirs, wrong = _faust(bench, url)
        _fill_up(url, records)
        ours = _potok(bench, url, records)
    what = (
        f"first output after kill -9, counts exact and {len(BROKEN)} dead letters "
        f"(Faust: {theirs:.0f} s, {wrong:+,} counts of {FAUST_RECORDS:,})"
    )
    return Row(what, ours, FIRST_OUTPUT_S, "s", 1.0, smaller_is_better=True, tries=[ours / FIRST_OUTPUT_S])


def _fill_up(url: str, records: int) -> None:
    middle = records // 2
    fill(url, FAUST_RECORDS, middle)
    open_broker(url).append("orders", [LogRecord(b"user-1", value, BEGIN_MS + middle) for value in BROKEN])
    fill(url, middle, records)


def _faust(bench: Bench, url: str) -> tuple[float, int]:
    """Seconds to its first output, and how many it counts too many."""
    where = _killed(bench, FAUST, url, FAUST_RECORDS // 2)
    with working(where) as worker:
        seconds = _first_output(where, worker)
        _wait_for_faust(where)
        found = counted_by_faust(where)
    return seconds, sum(found.values()) - sum(truth(FAUST_RECORDS).counts.values())


def _potok(bench: Bench, url: str, records: int) -> float:
    where = _killed(bench, POTOK, url, records // 3)
    with working(where) as worker:
        seconds = _first_output(where, worker)
        for _ in worker.marks():
            pass
    check(where, records, len(BROKEN))
    return seconds


def _killed(bench: Bench, side: str, url: str, after: int) -> Place:
    wait_for_quiet()
    where = place(bench, side, url)
    console.print(f"[dim]running {side}, to kill it after {after:,} records[/]")
    with working(where) as worker:
        for _, done in worker.marks():
            if done >= after:
                break
        # Not at the end of a batch, where it would be easy.
        time.sleep(INTO_A_BATCH_S)
    return where


def _first_output(where: Place, worker: Worker) -> float:
    """Seconds from its start to the first record behind those that its earlier life had written."""
    consumer = listener(where)
    places = [TopicPartition(where.out, partition) for partition in range(kafka.PARTITIONS)]
    for one in places:
        one.offset = consumer.get_watermark_offsets(one)[1]
    consumer.assign(places)
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            found = time.monotonic() - worker.began_at
            consumer.close()
            return found
        worker.check()
    raise RuntimeError(f"{where.side} wrote nothing after its restart")


def _wait_for_faust(where: Place) -> None:
    """Until it has committed all of the topic, and has written what its tables come to."""
    broker, deadline, quiet_since = where.broker(), time.monotonic() + LIMIT_S, 0.0
    known: dict[int, int] = {}
    while time.monotonic() < deadline:
        written = broker.end_offsets(where.changelog("order_counts"))
        if written != known:
            known, quiet_since = written, time.monotonic()
        done = broker.committed(where.name, "orders") == broker.end_offsets("orders")
        if done and time.monotonic() - quiet_since > QUIET_S:
            return
        time.sleep(0.2)
    raise RuntimeError("Faust never came to the end of the topic")
