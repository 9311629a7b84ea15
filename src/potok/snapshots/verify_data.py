"""Verify a data directory: the log with its metadata, the ledgers, and the state of every query.

Each part is read in its own process, so that one that crashes it does not affect the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from potok.backends.state_url import FILE
from potok.errors import PotokError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.state_location import state_of
from potok.snapshots.tables import known_queries
from potok.state.cell import REPAIR
from potok.state.verify import verify
from potok.storage.isolate import isolated


@dataclass(frozen=True, slots=True)
class Verified:
    """One part of a data directory; `damage` is empty if it is intact."""

    what: str
    detail: str
    damage: str = ""
    hint: str = ""


def verify_data(directory: Path) -> Iterator[Verified]:
    """Yield each part as soon as it has been read. Queries may run at the same time."""
    try:
        (found,) = isolated(lambda: _log(directory))
    except PotokError as error:
        yield Verified("log", str(directory / "log" / "meta"), error.message, error.hint)
        return
    yield Verified("log", f"{directory} (topics: {len(found['topics'])}, queries: {len(found['queries'])})")
    for topic in found["topics"]:
        yield from _part(f"topic {topic}", lambda topic=topic: _topic(directory, topic))
    for query in found["queries"]:
        yield from _part(f"query {query}", lambda query=query: _query(directory, query))


def _part(what: str, work: Any) -> Iterator[Verified]:
    try:
        for said in isolated(work):
            yield Verified(what, **said)
    except PotokError as error:
        yield Verified(what, "not completely read", error.message, error.hint)


def _log(directory: Path) -> Iterator[dict[str, Any]]:
    broker = EmbeddedBroker(directory)
    broker.verify()
    yield {"topics": broker.topics(), "queries": known_queries(broker)}


def _topic(directory: Path, topic: str) -> Iterator[dict[str, str] | None]:
    """Yield each damaged file, or one line for all."""
    files = records = damaged = 0
    for part in EmbeddedBroker(directory).verify_topic(topic):
        files, records = files + 1, records + part.records
        if part.error is None:
            yield None
        else:
            damaged += 1
            yield {"detail": part.path, "damage": part.error.message, "hint": part.error.hint}
    if not damaged:
        yield {"detail": f"records: {records:,}, files: {files:,}"}


def _query(directory: Path, query: str) -> Iterator[dict[str, str] | None]:
    broker = EmbeddedBroker(directory)
    entry = read_entry(broker, query)
    assert entry is not None
    location = state_of(broker, query).with_password()
    yield None
    # This process starts another one for each shard.
    found = verify(location, entry.shards)
    for shard in found.shards:
        yield {"detail": f"shard {shard.shard} at {shard.location}", "damage": shard.why, "hint": shard.hint}
    for cell in found.damaged:
        where = f"shard {cell.shard} of {location}"
        yield {"detail": where, "damage": f'table "{cell.table}" is damaged at key {cell.key!r}', "hint": REPAIR}
    if found.sound:
        at = "" if location.where.kind == FILE else f" at {location.where}"
        yield {"detail": f"batch {entry.batch}, cells: {found.cells:,}{at}"}
