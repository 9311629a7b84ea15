"""Windows, joins and chains: what the algebra costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import orders
from benchmarks.bench import Bench, Row, batch_time, speed
from benchmarks.foundation import inputs
from benchmarks.measure import Rates
from potok.log.open import open_broker

MANY_USERS = 1_000_000
CHANGED_A_BATCH = 0.01


def window(bench: Bench, kind: str, bar: float) -> Row:
    log, files = inputs(bench)
    return bench.at_least(
        f"{kind} window, count and sum",
        lambda: speed(bench.potok(kind, log, bench.batch)),
        lambda: speed(bench.handwritten(kind, files)),
        bar,
    )


def tumbling(bench: Bench) -> Row:
    return window(bench, "tumbling", 2.0)


def hopping(bench: Bench) -> Row:
    return window(bench, "hopping", 1.5)


def session(bench: Bench) -> Row:
    return window(bench, "session", 2.0)


def stream_join(bench: Bench) -> Row:
    records, batch = bench.records // 2, bench.batch // 2
    log = bench.made("join-log", lambda path: write_join_log(path, records))
    files = bench.made("join-files", lambda path: write_join_files(path, records, batch))
    return bench.at_least(
        "stream-stream join, two topics",
        lambda: speed(bench.potok("stream_join", log, bench.batch)),
        lambda: speed(bench.handwritten("stream_join", files)),
        1.3,
    )


def table_join(bench: Bench) -> Row:
    """A table that changes by 1 % a batch, against one that cannot change."""
    log = bench.made("table-log", write_users)
    files = bench.made("table-files", lambda path: write_table_files(path, bench.records, bench.batch))
    bench.potok("table_join", log, bench.batch, "users")
    return bench.at_least(
        "stream-table join, 1 M keys",
        lambda: speed(with_more_orders(bench, log)),
        lambda: speed(bench.handwritten("table_join", files)),
        0.7,
    )


def chain(bench: Bench, what: str, name: str, bar: float) -> Row:
    log = bench.log("small-log", 10_000, 1_000)
    return bench.at_most(
        f"chain of three steps on {name}, batch of 100",
        lambda: batch_time(bench.potok(what, log, 100)),
        lambda: batch_time(bench.potok("one_step", log, 100)),
        "ms",
        bar,
    )


def chain_one_key(bench: Bench) -> Row:
    return chain(bench, "three_steps", "one key", 1.3)


def chain_three_keys(bench: Bench) -> Row:
    return chain(bench, "three_keys", "three keys", 1.8)


def payments(first: int, count: int) -> pa.Array:
    """Payment number n pays order number n, up to two minutes after it."""
    numbers = np.arange(first, first + count)
    delays = np.random.default_rng(first).integers(0, 120_000, count)
    text = pc.cast
    return pc.binary_join_element_wise(
        '{"order_id":"order-',
        text(pa.array(numbers), pa.string()),
        '","paid":',
        text(pa.array(numbers % 500), pa.string()),
        '.5,"paid_at":',
        text(pa.array(orders.BEGIN_MS + numbers + delays), pa.string()),
        "}",
        "",
    )


def users(first: int, count: int, version: int = 0) -> tuple[pa.Array, pa.Array]:
    numbers = pc.cast(pa.array(np.arange(first, first + count)), pa.string())
    keys = pc.binary_join_element_wise("user-", numbers, "")
    values = pc.binary_join_element_wise(
        '{"user_id":"', keys, '","name":"name-', numbers, f'","city":"city-{version}"}}', ""
    )
    return keys, values


def chunked(records: int) -> list[tuple[int, int]]:
    return [(first, min(orders.CHUNK, records - first)) for first in range(0, records, orders.CHUNK)]


def write_join_log(path: Path, records: int) -> None:
    orders.write_log(path, records, 100_000)
    broker = open_broker(path)
    broker.create_topic("payments", orders.PARTITIONS)
    for first, count in chunked(records):
        broker.append("payments", pa.RecordBatch.from_pydict({"value": payments(first, count).cast(pa.binary())}))


def write_join_files(path: Path, records: int, per_file: int) -> None:
    orders.write_files(path / "orders", records, 100_000, per_file)
    (path / "payments").mkdir(parents=True)
    for number, first in enumerate(range(0, records, per_file)):
        texts = payments(first, min(per_file, records - first)).to_pylist()
        (path / "payments" / f"payments-{number:06}.json").write_text("\n".join(texts) + "\n")


def write_users(path: Path) -> None:
    broker = open_broker(path)
    broker.create_topic("orders", orders.PARTITIONS)
    broker.create_topic("users", orders.PARTITIONS)
    for first, count in chunked(MANY_USERS):
        append_users(path, *users(first, count))


def with_more_orders(bench: Bench, log: str) -> list[Rates]:
    """New orders, and for each batch of them new versions of 1 % of the users."""
    changed = int(MANY_USERS * CHANGED_A_BATCH)
    for version in range(1, max(bench.records // bench.batch, 1) + 1):
        append_users(Path(log), *users(version * changed, changed, version))
    broker = open_broker(log)
    for _, texts in orders.chunks(bench.records, MANY_USERS):
        broker.append("orders", pa.RecordBatch.from_pydict({"value": texts.cast(pa.binary())}))
    return bench.potok("table_join", log, bench.batch, "users")


def append_users(path: Path, keys: pa.Array, values: pa.Array) -> None:
    columns = {"key": keys.cast(pa.binary()), "value": values.cast(pa.binary())}
    open_broker(path).append("users", pa.RecordBatch.from_pydict(columns))


def write_table_files(path: Path, records: int, per_file: int) -> None:
    orders.write_files(path / "orders", records, MANY_USERS, per_file)
    (path / "users").mkdir(parents=True)
    for first, count in chunked(MANY_USERS):
        texts = users(first, count)[1].to_pylist()
        (path / "users" / f"users-{first:08}.json").write_text("\n".join(texts) + "\n")
