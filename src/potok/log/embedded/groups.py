"""Offsets that consumer groups have committed. They are kept under the topic's id, and go with the topic."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from potok.log.embedded import catalog
from potok.log.embedded.metadata import Transaction
from potok.log.errors import InvalidName

_LONGEST = 400


def committed(txn: Transaction, group: str, topic: str) -> dict[int, int]:
    raw = txn.get(_key(txn, group, topic))
    return {} if raw is None else {int(partition): offset for partition, offset in orjson.loads(raw).items()}


def commit(txn: Transaction, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    merged = committed(txn, group, topic) | dict(offsets)
    txn.put(
        _key(txn, group, topic), orjson.dumps({str(partition): offset for partition, offset in sorted(merged.items())})
    )


def _key(txn: Transaction, group: str, topic: str) -> bytes:
    encoded = group.encode()
    if not 0 < len(encoded) <= _LONGEST:
        raise InvalidName("group", group, f"use 1 to {_LONGEST} bytes")
    return b"g" + catalog.get_topic(txn, topic).id + encoded
