"""Reset the offsets of a stopped query."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.runtime.planning.start_offsets import Positions, protect
from potok.runtime.queries.directory import query_directory
from potok.runtime.queries.ledger import Ledger
from potok.runtime.queries.lock import QueryAlreadyRuns, QueryLock
from potok.snapshots.rows.layout import load_layouts
from potok.snapshots.state_location import state_of
from potok.snapshots.tables import NoSuchQuery, known_queries
from potok.state.entry import metadata_key_of
from potok.state.offsets import Offsets
from potok.state.open import StateLocation


class StateInTheWay(QueryError):
    """Moved offsets under tables that have counted the records in between."""

    def __init__(self, query: str, tables: list[str]) -> None:
        super().__init__(
            f'query "{query}" keeps {", ".join(tables)}, which would count records twice or miss some',
            hint="pass --drop-state to rebuild them from the new offsets, or --keep-state to keep them as they are",
        )


class OutsideTheLog(QueryError):
    """An offset that is not in the log."""

    def __init__(self, topic: str, partition: int, offset: int, first: int, end: int) -> None:
        super().__init__(
            f'topic "{topic}" partition {partition} has no offset {offset}',
            hint=f"its offsets are {first} to {end} (the next record to be written)",
        )


@dataclass(frozen=True, slots=True)
class Move:
    """One partition before and after a reset."""

    topic: str
    partition: int
    before: int
    after: int


def plan_moves(broker: Broker, query: str, wanted: Positions) -> list[Move]:
    """Return what a reset would change; every requested offset must be in the log."""
    ledger = _ledger(broker, query)
    moves: list[Move] = []
    for topic, parts in sorted(ledger.entry.offsets.topics.items()):
        firsts, ends = broker.earliest_offsets(topic), broker.end_offsets(topic)
        for part, before in sorted(parts.items()):
            after = wanted.get(topic, {}).get(part, before)
            if after != before and not firsts[part] <= after <= ends[part]:
                raise OutsideTheLog(topic, part, after, firsts[part], ends[part])
            moves.append(Move(topic, part, before, after))
    return moves


def reset(
    broker: Broker, query: str, wanted: Callable[[], Positions], *, drop_state: bool, keep_state: bool
) -> list[Move]:
    """Reset a query to other offsets. Tables are dropped with the state of their steps, or kept as they are.

    `wanted` is called once no process can start the query: a batch in between would move the offsets that the plan is
    based on.
    """
    with stopped(broker, query):
        moves = plan_moves(broker, query, wanted())
        tables = tables_of(broker, query)
        if tables and not drop_state and not keep_state and any(move.before != move.after for move in moves):
            raise StateInTheWay(query, tables)
        ledger = _ledger(broker, query)
        entry = ledger.entry
        topics: dict[str, dict[int, int]] = {}
        for move in moves:
            topics.setdefault(move.topic, {})[move.partition] = move.after
        of_state = ("stream_times", "next_ends", "watermarks", "next_timers", "positions")
        forgotten: tuple[str, ...] = of_state if drop_state else ()
        changes: dict[str, Any] = {field: {} for field in forgotten}
        if drop_state:
            changes["cells"] = None
            state_of(broker, query).with_password().remove()
        # No other batch may reuse the number of one whose output may already be visible.
        sealed = entry.sealed(batch=entry.batch + 1)
        ledger.replace(replace(sealed, offsets=Offsets(topics, entry.offsets.empty_batches), **changes))
        return moves


def forget(broker: Broker, query: str) -> None:
    """Remove a stopped query with its tables, as if it had never run; its topics are kept."""
    directory = query_directory(broker, query)
    with stopped(broker, query):
        _ledger(broker, query)
        state = state_of(broker, query).with_password()
        state.remove()
        # Cells that a shadow has replaced are stored under the query's own name, which it would use again.
        StateLocation(state.where, query).remove()
        protect(broker, query, {})
        broker.set_metadata(dict.fromkeys(broker.list_metadata(metadata_key_of(query, ""))))
    for left in (directory, query_directory(broker, query)):
        shutil.rmtree(left, ignore_errors=True)


def tables_of(broker: Broker, query: str) -> list[str]:
    data = broker.get_metadata(metadata_key_of(query, "tables"))
    return [] if data is None else sorted(load_layouts(data))


@contextmanager
def stopped(broker: Broker, query: str) -> Iterator[None]:
    """Hold the lock of a query, so that no process starts it; raise if one runs it."""
    try:
        lock = QueryLock(query_directory(broker, query), query)
    except QueryAlreadyRuns as error:
        raise QueryAlreadyRuns(
            query, error.holder, hint="stop that process first: this command needs a stopped query"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _ledger(broker: Broker, query: str) -> Ledger:
    ledger = Ledger(broker, query)
    if ledger.is_new:
        raise NoSuchQuery(query, known_queries(broker))
    return ledger
