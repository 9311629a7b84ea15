"""What every start of a capture does with its tables, whatever the database."""

from __future__ import annotations

from potok.sources.cdc.errors import ChangesLost
from potok.sources.cdc.landing.landing import CapturePosition, Landing, TableProgress
from potok.sources.cdc.landing.topics import Topics
from potok.topology.capture import Capture


def check_topics(capture: Capture, position: CapturePosition, topics: Topics) -> None:
    """Raise if a topic of the capture was deleted."""
    for table in position.tables:
        if table in capture.tables and not topics.exists(table):
            raise ChangesLost(capture.name, f'topic "{capture.topic(table)}" does not exist any more')


def with_tables(capture: Capture, position: CapturePosition, landing: Landing, topics: Topics) -> CapturePosition:
    """Add tables that are captured from here on, and forget those that are not any more."""
    kept = {table: progress for table, progress in position.tables.items() if table in capture.tables}
    added = [table for table in capture.tables if table not in kept]
    if not added and len(kept) == len(position.tables):
        return position
    outputs = []
    for table in added:
        kept[table] = TableProgress(done=capture.snapshot == "never")
        if not kept[table].done:
            # Rows of an earlier capture may not exist any more, and the snapshot would not say so.
            outputs += topics.deletions(table)
    return landing.land(outputs, CapturePosition(position.server, position.stream, kept, position.batch))
