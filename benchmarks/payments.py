"""Payments of many users, the same for all sides: in a log, and as files of JSON documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.orders import BEGIN_MS, CHUNK, PARTITIONS
from potok.log.open import open_broker

SMALL, MIDDLE = 0.3, 0.5
"""The shares of payments below 10 and up to 100; the others are above."""
LENGTH_MS = 20 * 60_000
"""The time of all payments: of one user there is one a minute, if there are twenty of each."""


def values(first: int, count: int, users: int, records: int) -> tuple[pa.Array, pa.Array]:
    """Payments number `first` to `first + count` as JSON text, and their times."""
    random = np.random.default_rng(11 + first)
    numbers = np.arange(first, first + count)
    share = random.random(count)
    amounts = np.where(
        share < SMALL,
        random.integers(1, 10, count),
        np.where(share < SMALL + MIDDLE, random.integers(10, 101, count), random.integers(101, 1_000, count)),
    )
    times = BEGIN_MS + numbers * LENGTH_MS // records
    text = pc.cast
    texts = pc.binary_join_element_wise(
        '{"payment_id":"payment-',
        text(pa.array(numbers), pa.string()),
        '","user_id":"user-',
        text(pa.array(random.integers(0, users, count)), pa.string()),
        '","amount":',
        text(pa.array(amounts), pa.string()),
        ',"paid_at":',
        text(pa.array(times), pa.string()),
        "}",
        "",
    )
    return texts, pa.array(times)


def chunks(records: int, users: int) -> Iterator[tuple[int, pa.Array, pa.Array]]:
    for first in range(0, records, CHUNK):
        yield first, *values(first, min(CHUNK, records - first), users, records)


def write_log(directory: Path, records: int, users: int) -> None:
    broker = open_broker(directory)
    broker.create_topic("payments", PARTITIONS)
    for first, texts, times in chunks(records, users):
        keys = pc.cast(pa.array(np.arange(first, first + len(texts))), pa.string())
        columns = {"key": keys.cast(pa.binary()), "value": texts.cast(pa.binary()), "timestamp": times}
        broker.append("payments", pa.RecordBatch.from_pydict(columns))


def write_files(directory: Path, records: int, users: int, files: int) -> None:
    """One JSON document a line. Each file has every so-manieth record, so that all are in the order of time, and
    whoever reads them side by side sees payments in about that order."""
    directory.mkdir(parents=True, exist_ok=True)
    written = [(directory / f"payments-{number}.json").open("w") for number in range(files)]
    for _, texts, _ in chunks(records, users):
        for number, file in enumerate(written):
            file.write("\n".join(texts[number::files].to_pylist()) + "\n")
    for file in written:
        file.close()
