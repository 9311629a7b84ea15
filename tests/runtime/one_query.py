"""A group of one query, over whatever log and state, whose batches a test runs by hand in its own process."""

from __future__ import annotations

import threading
from collections.abc import Callable

from potok.errors import PotokError
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.queries.group_query import GroupQuery
from potok.runtime.queries.prepare import Prepared
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings


def group_of(prepared: Prepared, settings: Settings) -> QueryGroup:
    executor = InProcessExecutor()
    member = GroupQuery.start(prepared, executor, settings, first=1 << 20)
    group = QueryGroup(prepared.broker, settings, executor, member.name, lock=False, ends_with_query=True)
    group.take(member)
    return group


def process_all(group: QueryGroup, waiting: Callable[[PotokError], None]) -> None:
    """Run batches until all records are processed; `waiting` is called with each error that is waited for."""
    (member,) = group._queries.values()
    reported: PotokError | None = None
    while True:
        moved = group.step()
        waits_for = group.waiting_for or (member.waiting.error if member.waiting else None)
        if waits_for is not None and waits_for is not reported:
            waiting(waits_for)
        reported = waits_for
        if not moved and waits_for is None and not member.lag():
            return
        if not moved:
            group._planner.wait([member], threading.Event())
