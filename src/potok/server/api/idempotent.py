"""Idempotent appends: the key of a request is stored in the transaction that appends."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from potok.clock import now_ms
from potok.log.broker import LOG_SCHEMA, Broker
from potok.log.errors import MetadataConflict, TopicNotFound
from potok.log.partitioner import split
from potok.records.position import Position
from potok.server.api.record_bodies import AddressedRecord
from potok.server.errors import BadRequest, KeyUsedBefore

_PREFIX = "http/once/"
RETENTION_MS = 24 * 3_600_000
_PRUNE_EVERY_S = 600.0

_locks = [threading.Lock() for _ in range(64)]
_pruned_at: dict[int, float] = {}


def append_once(
    broker: Broker, topic: str, records: Sequence[AddressedRecord], key: str | None, body: bytes
) -> dict[str, Any]:
    """Append all records in one transaction. If the `key` was used before, append nothing and repeat that response.

    On Kafka the key is stored right after the records: if the process dies between the two and the request is sent
    again, they are appended twice.
    """
    if not broker.has_topic(topic):
        raise TopicNotFound(topic)
    if not records:
        raise BadRequest("there are no records", hint='send {"key": "k", "value": {...}}')
    parts = _parts(broker, topic, records)
    response = {"topic": topic, "records": len(records), "partitions": {str(p): len(batch) for p, batch in parts}}
    staged = [broker.stage(None, topic, partition, batch) for partition, batch in parts]
    if key is None:
        return {**response, "position": str(broker.append_staged(staged))}
    metadata_key, digest = _metadata_key(broker.topic_ids([topic])[topic], key), hashlib.sha256(body).hexdigest()

    def after(position: Position) -> dict[str, bytes]:
        response["position"] = str(position)
        return {metadata_key: orjson.dumps({"at": now_ms(), "body": digest, "response": response})}

    with _locks[int(metadata_key[-2:], 16) % len(_locks)]:
        found = broker.get_metadata(metadata_key)
        if found is None:
            try:
                broker.publish(staged, {}, {metadata_key: None}, metadata_after=after)
            except MetadataConflict:
                found = broker.get_metadata(metadata_key)
    _prune(broker)
    if found is None:
        return response
    before = orjson.loads(found)
    if before["body"] != digest:
        raise KeyUsedBefore(key)
    # The second is an earlier name of the field. The records were appended, even if the response cannot be read.
    return {**(before.get("response") or before.get("told") or response), "repeated": True}


def _parts(broker: Broker, topic: str, records: Sequence[AddressedRecord]) -> list[tuple[int, pa.RecordBatch]]:
    """Group records by partition, in order."""
    partitions = broker.partitions(topic)
    by_partition: dict[int | None, list[AddressedRecord]] = {}
    for item in records:
        if item.partition is not None and not item.partition < partitions:
            raise TopicNotFound(topic, item.partition, partitions)
        by_partition.setdefault(item.partition, []).append(item)
    parts: list[tuple[int, pa.RecordBatch]] = []
    for partition, items in by_partition.items():
        batch = _batch(items)
        _check(broker, topic, batch)
        parts += split(batch, partitions) if partition is None else [(partition, batch)]
    return parts


def _batch(items: Sequence[AddressedRecord]) -> pa.RecordBatch:
    rows = [item.record for item in items]
    headers = [[{"name": n, "value": v} for n, v in row.headers] or None for row in rows]
    times = [None if row.timestamp_ms < 0 else row.timestamp_ms for row in rows]
    columns = [
        [row.key for row in rows],
        [row.value for row in rows],
        times,
        [None] * len(rows),
        headers,
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, LOG_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=LOG_SCHEMA)


def _check(broker: Broker, topic: str, batch: pa.RecordBatch) -> None:
    for row, why in broker.unfit(topic, batch).items():
        raise BadRequest(f"record {row + 1} cannot be appended: {why}", hint="nothing was appended")


def _metadata_key(topic_id: str, key: str) -> str:
    """Return the prefix of the keys of a topic. It changes if the topic is deleted and created again."""
    return _PREFIX + hashlib.sha256(f"{topic_id}\0{key}".encode()).hexdigest()


def _prune(broker: Broker) -> None:
    """Delete keys older than a day, from time to time."""
    now = time.monotonic()
    if now - _pruned_at.setdefault(id(broker), now) < _PRUNE_EVERY_S:
        return
    _pruned_at[id(broker)] = now
    prune(broker, now_ms() - RETENTION_MS)


def prune(broker: Broker, before_ms: int) -> int:
    """Delete keys older than a timestamp; return their number."""
    old = {
        metadata_key: data
        for metadata_key, data in broker.list_metadata(_PREFIX).items()
        if orjson.loads(data)["at"] < before_ms
    }
    if old:
        broker.set_metadata(dict.fromkeys(old), old)
    return len(old)
