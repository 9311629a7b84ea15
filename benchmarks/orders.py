"""The records that all benchmarks read: JSON orders, the same for both sides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.log.open import open_broker

PARTITIONS = 4
CHUNK = 100_000
BEGIN_MS = 1_700_000_000_000


def values(first: int, count: int, users: int, seed: int = 7) -> pa.Array:
    """Orders number `first` to `first + count` as JSON text."""
    random = np.random.default_rng(seed + first)
    numbers = np.arange(first, first + count)
    user = random.integers(0, users, count)
    cents = random.integers(100, 50_000, count)
    text = pc.cast
    return pc.binary_join_element_wise(
        '{"order_id":"order-',
        text(pa.array(numbers), pa.string()),
        '","user_id":"user-',
        text(pa.array(user), pa.string()),
        '","amount":',
        text(pa.array(cents // 100), pa.string()),
        ".",
        text(pa.array(10 + cents % 90), pa.string()),
        ',"items":["item-',
        text(pa.array(numbers % 997), pa.string()),
        '","item-',
        text(pa.array(numbers % 89), pa.string()),
        '"],"created_at":',
        text(pa.array(BEGIN_MS + numbers), pa.string()),
        "}",
        "",
    )


def chunks(records: int, users: int) -> Iterator[tuple[int, pa.Array]]:
    for first in range(0, records, CHUNK):
        yield first, values(first, min(CHUNK, records - first), users)


def write_log(directory: Path, records: int, users: int, topic: str = "orders") -> None:
    broker = open_broker(directory)
    broker.create_topic(topic, PARTITIONS)
    for first, texts in chunks(records, users):
        times = pa.array(BEGIN_MS + np.arange(first, first + len(texts)))
        keys = pc.cast(pa.array(np.arange(first, first + len(texts))), pa.string())
        batch = pa.RecordBatch.from_pydict(
            {"key": keys.cast(pa.binary()), "value": texts.cast(pa.binary()), "timestamp": times}
        )
        broker.append(topic, batch)


def batches(records: int, users: int) -> Iterator[pa.RecordBatch]:
    """The same orders, each under the key of its user."""
    for first, texts in chunks(records, users):
        times = pa.array(BEGIN_MS + np.arange(first, first + len(texts)))
        keys = pc.struct_field(pc.extract_regex(texts, '"user_id":"(?P<user>[^"]+)"'), 0)
        yield pa.RecordBatch.from_pydict(
            {"key": keys.cast(pa.binary()), "value": texts.cast(pa.binary()), "timestamp": times}
        )


def write_files(directory: Path, records: int, users: int, per_file: int) -> None:
    """One JSON document a line, as many a file as one batch of the hand-written query should take from it."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, records, per_file)):
        texts = values_in_chunks(first, min(per_file, records - first), users)
        (directory / f"orders-{number:06}.json").write_text("\n".join(texts) + "\n")


def values_in_chunks(first: int, count: int, users: int) -> list[str]:
    """The same orders as in the log: they are drawn chunk by chunk, so a file takes its part of each chunk."""
    found: list[str] = []
    while count > 0:
        begin = first - first % CHUNK
        texts = values(begin, CHUNK, users)
        part = texts.slice(first - begin, count)
        found += part.to_pylist()
        first, count = first + len(part), count - len(part)
    return found
