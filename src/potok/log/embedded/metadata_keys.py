"""Metadata keys: a small key-value space next to the log, changed in the same transactions as the log."""

from __future__ import annotations

from collections.abc import Mapping

from potok.log.embedded import catalog
from potok.log.embedded.metadata import Transaction
from potok.log.errors import InvalidName, MetadataConflict

_LONGEST = 500
"""LMDB supports keys of up to 511 bytes."""


def key(name: str) -> bytes:
    encoded = name.encode()
    if not 0 < len(encoded) <= _LONGEST:
        raise InvalidName("metadata key", name, f"use 1 to {_LONGEST} bytes")
    return b"m" + encoded


def check(txn: Transaction, expect: Mapping[str, bytes | None]) -> None:
    for name, value in expect.items():
        if txn.get(key(name)) != value:
            raise MetadataConflict(name)


def put(txn: Transaction, updates: Mapping[str, bytes | None]) -> None:
    for name, value in updates.items():
        if value is None:
            txn.delete(key(name))
        else:
            txn.put(key(name), value)


def with_prefix(txn: Transaction, prefix: str) -> dict[str, bytes]:
    return {found[1:].decode(): value for found, value in catalog.scan(txn, b"m" + prefix.encode())}
