"""Render dead letters as text and JSON: a list, one in detail, and the results of replay and purge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from potok.cli.output import console, counted, note, print_table, show_bytes_of_record
from potok.cli.state.tables import show_instant
from potok.dead_letters.plain import show_position

if TYPE_CHECKING:
    from potok.dead_letters.dead_letters import Purge
    from potok.dead_letters.read import DeadLetter, Fate
    from potok.dead_letters.replay import Replay

_SHOWN_CHARS = 60

_COLUMNS = ("query", "position", "set aside (UTC)", "state", "replays", "step", "reason", "error", "record", "value")
_NARROW = ("position", "step", "reason", "error", "record")
_WIDE = 160

_ALTERED = {
    "seen": "as the step saw them: the record was no longer in the log",
    "cut": "truncated: the dead letter would have been too large for the log",
}


def print_dead_letters(found: Sequence[tuple[str, DeadLetter, Fate]]) -> None:
    """Print a list; a narrow terminal gets fewer columns, and `show` has the rest."""
    rows = [dict(zip(_COLUMNS, _row(dead_letter), strict=True)) for dead_letter in found]
    wanted = list(_COLUMNS)
    if console().width < _WIDE:
        apart = {name for name in ("query", "state") if len({row[name] for row in rows}) > 1}
        wanted = [name for name in _COLUMNS if name in apart or name in _NARROW]
    print_table(wanted, ([row[name] for name in wanted] for row in rows))


def print_dead_letter(query: str, dead_letter: DeadLetter, fate: Fate) -> None:
    lines = {
        "query": query,
        "position": show_position(dead_letter),
        "state": fate.value,
        "set aside": f"{show_instant(dead_letter.set_aside_at_ms)} UTC",
        "reason": dead_letter.reason,
        "step": dead_letter.step,
        "error": _safe(dead_letter.error),
        "record": _origin(dead_letter),
        "replayed": counted(dead_letter.replays, "time") if dead_letter.replays else "never",
        "time": f"{show_instant(dead_letter.timestamp_ms)} UTC ({dead_letter.timestamp_ms})",
        "key": _whole(dead_letter.key),
        "value": _whole(dead_letter.value),
    }
    if dead_letter.altered:
        lines["bytes"] = _ALTERED.get(dead_letter.altered, dead_letter.altered)
    for name, text in lines.items():
        console().print(f"{name + ':':<11} {text}", markup=False)
    for name, value in dead_letter.headers:
        console().print(f"header:     {_safe(name)} = {_whole(value)}", markup=False)


def print_replay(query: str, replay: Replay, *, done: bool) -> None:
    if replay.records:
        rows = ((topic, part, count) for (topic, part), count in sorted(replay.appended.items()))
        print_table(("topic", "partition", "records"), rows)
    for why, count in sorted(replay.left.items()):
        note(f"{counted(count, 'dead letter')} cannot be replayed: {why}")
    what = f'{counted(replay.records, "record")} of {counted(replay.dead_letters, "dead letter")} of query "{query}"'
    if not replay.records:
        note(f'nothing to replay for query "{query}"')
    elif done:
        note(f"appended {what}; other readers of these topics receive them again, too")
    else:
        note(f"would append {what}; omit --dry-run to do so")


def print_purge(query: str, purge: Purge, *, done: bool) -> None:
    dead_letters = f'{counted(purge.dead_letters, "dead letter")} of query "{query}"'
    if not done:
        note(f"would purge {dead_letters}; omit --dry-run to do so")
        return
    removed = (
        f"{counted(purge.removed, 'dead letter')} removed from the log" if purge.removed else "nothing to remove yet"
    )
    note(f"purged {dead_letters}; {removed}")


def _row(found: tuple[str, DeadLetter, Fate]) -> tuple[str | int, ...]:
    query, dead_letter, fate = found
    return (
        query,
        show_position(dead_letter),
        show_instant(dead_letter.set_aside_at_ms),
        fate.value,
        dead_letter.replays,
        dead_letter.step,
        dead_letter.reason,
        _shortened(_safe(dead_letter.error)),
        _origin(dead_letter),
        _shortened(
            "null" if dead_letter.value is None else show_bytes_of_record(dead_letter.value[: _SHOWN_CHARS * 4])
        ),
    )


def _origin(dead_letter: DeadLetter) -> str:
    return (
        f"{dead_letter.topic} {dead_letter.partition}:{dead_letter.offset}"
        if dead_letter.topic
        else "made inside the query"
    )


def _safe(text: str) -> str:
    """Escape an error, which may quote the record that caused it."""
    return show_bytes_of_record(text.encode())


def _whole(data: bytes | None) -> str:
    return "null" if data is None else f"{show_bytes_of_record(data)} ({counted(len(data), 'byte')})"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
