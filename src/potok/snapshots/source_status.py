"""The status that gateways and captures report to their log, so that any process can show it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from potok.metadata.metadata_store import MetadataStore
from potok.state.entry import decoding

PREFIX = "source_status/"

GATEWAY, CAPTURE = "gateway", "capture"

SILENT_MS = 15_000
"""A source that has not reported for this long is considered dead."""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The last report of a listener or a capture."""

    kind: str
    name: str
    at_ms: int
    process: str
    running: bool
    status: dict[str, Any]


def status_key(kind: str, name: str) -> str:
    return f"{PREFIX}{kind}/{name}"


def encode_status(at_ms: int, process: str, *, running: bool, status: dict[str, Any]) -> bytes:
    return json.dumps({"at": at_ms, "process": process, "running": running, "status": status}, default=str).encode()


def read_source_statuses(metadata: MetadataStore) -> list[SourceStatus]:
    """Return the last report of each listener and capture."""
    found = []
    for key, data in sorted(metadata.list_metadata(PREFIX).items()):
        kind, _, name = key.removeprefix(PREFIX).partition("/")
        with decoding(f'the status of {kind} "{name}"'):
            report = json.loads(data)
            found.append(SourceStatus(kind, name, report["at"], report["process"], report["running"], report["status"]))
    return found
