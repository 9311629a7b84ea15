"""The URLs of a Faust program, as Potok has them."""

from __future__ import annotations

from typing import Any

from potok.app.options import note

_BESIDE_THE_LOG = ("rocksdb:", "memory:", "aerospike:")


def broker_url(given: Any) -> str | None:
    """Where the log lives. Several servers of Kafka may be given as a list, or in one text with `;`."""
    if given is None:
        return None
    listed = [str(item) for item in given] if isinstance(given, list | tuple) else str(given).split(";")
    first, *rest = [item.strip() for item in listed if item.strip()]
    for scheme in ("aiokafka://", "confluent://"):
        first = first.replace(scheme, "kafka://", 1)
    return ",".join([first, *(item.partition("://")[2] or item for item in rest)])


def state_url(given: Any) -> str | None:
    """Where state is kept: stores that live in the worker of Faust are those beside the log here."""
    if given is None:
        return None
    url = str(given)
    if url.startswith(_BESIDE_THE_LOG):
        note(f"store {url}: state is kept beside the log, in fenced cells")
        return None
    return url
