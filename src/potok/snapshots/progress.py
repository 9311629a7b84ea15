"""The progress of a query, which it stores with each batch."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from potok.metadata.metadata_store import MetadataStore
from potok.state.entry import decoding, metadata_key_of


@dataclass(frozen=True, slots=True)
class Progress:
    """Times are milliseconds since 1970; totals count from the creation of the query, everything else is of the last
    batch."""

    query: str
    state: str
    error: str
    started_at_ms: int
    committed_at_ms: int
    batch: int
    batch_ms: int
    records_in: int
    records_out: int
    lag: int
    total_in: int
    total_out: int
    dead_letters: int
    dead_letters_by_reason: dict[str, int]
    state_bytes: int
    state_keys: dict[str, int]
    offsets: dict[str, dict[str, int]]
    watermarks: dict[str, int]
    steps: dict[str, dict[str, int]]
    stream_time_jumps: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    """How often each expression of a statement failed and was NULL."""
    object_requests: dict[str, int] = field(default_factory=dict)
    """Requests to object storage by kind, and bytes in both directions; empty for other stores."""


def read_progress(metadata: MetadataStore, query: str) -> Progress | None:
    """Return the progress of a query; None for one that never ran."""
    data = metadata.get_metadata(metadata_key_of(query, "progress"))
    return None if data is None else progress_of(query, data)


def progress_of(query: str, data: bytes) -> Progress:
    """Decode the progress of a query."""
    with decoding(f'the progress of query "{query}"'):
        return Progress(**json.loads(data))


def read_description(metadata: MetadataStore, query: str) -> dict[str, Any] | None:
    """Return the topology that a query runs, as plain data."""
    data = metadata.get_metadata(metadata_key_of(query, "description"))
    with decoding(f'the description of query "{query}"'):
        return None if data is None else dict(json.loads(data))
