"""Committed offsets of consumer groups. They are stored under the topic id, and deleted with the topic."""

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


def names(txn: Transaction) -> set[str]:
    """Return the groups with committed offsets in any topic."""
    return {key[1 + catalog.ID_BYTES :].decode() for key, _ in catalog.scan(txn, b"g")}


def checked(group: str) -> bytes:
    """Return the name of a group as a part of a key."""
    encoded = group.encode()
    if not 0 < len(encoded) <= _LONGEST or b"\0" in encoded:
        raise InvalidName("group", group, f"use 1 to {_LONGEST} bytes, none of them zero")
    return encoded


def _key(txn: Transaction, group: str, topic: str) -> bytes:
    return b"g" + catalog.get_topic(txn, topic).id + checked(group)
