"""Report how current the tables of a query are: whether it runs, and its lag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from potok.cli.output import counted, note
from potok.errors import PotokError

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log


def report_freshness(log: Log, query: str) -> None:
    """Print to stderr why a table may not be up to date; nothing if it is."""
    text = freshness(log, query)
    if text:
        note(text)


def freshness(log: Log, query: str) -> str:
    from potok.runtime.queries.directory import query_directory
    from potok.runtime.queries.lock import is_held
    from potok.snapshots.ledger_view import read_entry
    from potok.snapshots.progress import read_progress

    entry, progress = read_entry(log, query), read_progress(log, query)
    if entry is None or progress is None:
        return ""
    try:
        lag = entry.offsets.pending(log.end_offsets_of(list(entry.offsets.topics)))
    except PotokError:
        return ""  # a topic of the query was deleted
    if not lag:
        return ""
    waiting = f"{counted(lag, 'record')} {'is' if lag == 1 else 'are'} not in its tables yet"
    if progress.state == "failed":
        return f'query "{query}" has failed, {waiting}: {progress.error.splitlines()[0] if progress.error else ""}'
    if not is_held(query_directory(log, query)):
        return f'query "{query}" is not running, {waiting}: potok run PROGRAM starts it'
    state = "is starting" if progress.state == "starting" else "is running"
    return f'query "{query}" {state}, {waiting}'
