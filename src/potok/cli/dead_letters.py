"""`potok dead-letters`: the records that a query set aside, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.consume import as_object as record_as_object
from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import console, note, print_json, print_table, show_bytes_of_record
from potok.cli.tables import QueryOption, chosen_query, show_instant
from potok.errors import QueryError

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.views.dead_letters import DeadLetter

app = command_app(no_args_is_help=True, help="Show the records that a query set aside, and why.")

_SHOWN_CHARS = 60


class NoSuchLetter(QueryError):
    """An offset at which no dead letter lies."""


@app.command("list")
def list_letters(
    context: typer.Context,
    query: QueryOption = None,
    reason: Annotated[
        str | None, typer.Option(help="Only these: decode, timestamp, error, late, no key, encode.")
    ] = None,
    step: Annotated[str | None, typer.Option(help="Only those that this step set aside.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The latest so many of each query.")] = 20,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """List the latest dead letters, the newest last."""
    from potok.views.dead_letters import dead_letter_topic, latest_dead_letters

    wanted = _wanted(reason, step)
    found: list[tuple[str, DeadLetter]] = []
    with opened_log(context, broker) as log:
        queries = _queries(log, query)
        for name in queries:
            topic = dead_letter_topic(name)
            if log.has_topic(topic):
                found += ((name, letter) for letter in latest_dead_letters(log, topic, limit, wanted))
        counts = [_counts(log, name) for name in queries]
    if as_json:
        for name, letter in found:
            print_json({"query": name, **as_object(letter)})
        return
    if found:
        print_table(
            ("query", "letter", "set aside (UTC)", "step", "reason", "error", "record", "value"), map(_row, found)
        )
    for line in filter(None, counts):
        note(line)
    if not found:
        note("no dead letters" + (" of this kind" if reason or step else ""))


@app.command()
def show(
    context: typer.Context,
    letter: Annotated[str, typer.Argument(metavar="[PARTITION:]OFFSET", help="As `list` shows it.")],
    query: QueryOption = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Show one dead letter with all that is known of it, and the original bytes."""
    from potok.views.dead_letters import dead_letter_topic, dead_letters_at

    partition, offset = _place(letter)
    with opened_log(context, broker) as log:
        name = chosen_query(log, query)
        found = dead_letters_at(log, dead_letter_topic(name), offset, partition)
    if not found:
        raise NoSuchLetter(f'query "{name}" has no dead letter at {letter}', hint="potok dead-letters list shows them")
    if len(found) > 1:
        places = " or ".join(_show_place(each) for each in found)
        raise NoSuchLetter(f"there are {len(found)} dead letters at offset {offset}", hint=f"say which: {places}")
    if as_json:
        print_json({"query": name, **as_object(found[0])})
    else:
        _print(name, found[0])


def as_object(letter: DeadLetter) -> dict[str, Any]:
    """The original record as `potok consume --json` shows it, and what became of it."""
    from potok.records.log_record import LogRecord

    record = LogRecord(letter.key, letter.value, letter.timestamp_ms, (), letter.topic, letter.partition, letter.offset)
    return {
        "letter": _show_place(letter),
        "set_aside_at_ms": letter.set_aside_at_ms,
        "reason": letter.reason,
        "step": letter.step,
        "error": letter.error,
        "topic": letter.topic,
        **record_as_object(record),
    }


def _wanted(reason: str | None, step: str | None) -> Callable[[DeadLetter], bool]:
    return lambda letter: letter.reason == (reason or letter.reason) and letter.step == (step or letter.step)


def _queries(log: Log, given: str | None) -> list[str]:
    from potok.views.tables import known_queries

    return [chosen_query(log, given)] if given else known_queries(log)


def _counts(log: Log, query: str) -> str:
    """How many there are of each reason: a flood of one must not hide the others."""
    from potok.views.progress import read_progress

    progress = read_progress(log, query)
    if progress is None or not progress.dead_letters:
        return ""
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(progress.dead_letters_by_reason.items()))
    return f'query "{query}" has set aside {progress.dead_letters:,} in all: {reasons}'


def _place(letter: str) -> tuple[int | None, int]:
    partition, colon, offset = letter.rpartition(":")
    if not offset.isdigit() or (colon and not partition.isdigit()):
        raise typer.BadParameter(f'"{letter}" is not OFFSET or PARTITION:OFFSET', param_hint="letter")
    return (int(partition) if colon else None), int(offset)


def _row(found: tuple[str, DeadLetter]) -> tuple[str, ...]:
    query, letter = found
    return (
        query,
        _show_place(letter),
        show_instant(letter.set_aside_at_ms),
        letter.step,
        letter.reason,
        _shortened(_safe(letter.error)),
        _origin(letter),
        _shortened("null" if letter.value is None else show_bytes_of_record(letter.value[: _SHOWN_CHARS * 4])),
    )


def _print(query: str, letter: DeadLetter) -> None:
    lines = {
        "query": query,
        "letter": _show_place(letter),
        "set aside": f"{show_instant(letter.set_aside_at_ms)} UTC",
        "reason": letter.reason,
        "step": letter.step,
        "error": _safe(letter.error),
        "record": _origin(letter),
        "time": f"{show_instant(letter.timestamp_ms)} UTC ({letter.timestamp_ms})",
        "key": _whole(letter.key),
        "value": _whole(letter.value),
    }
    for name, text in lines.items():
        console().print(f"{name + ':':<11} {text}", markup=False)


def _show_place(letter: DeadLetter) -> str:
    partition, offset = letter.place
    return f"{partition}:{offset}"


def _origin(letter: DeadLetter) -> str:
    return f"{letter.topic} {letter.partition}:{letter.offset}" if letter.topic else "made inside the query"


def _safe(text: str) -> str:
    """An error may quote the record that caused it."""
    return show_bytes_of_record(text.encode())


def _whole(data: bytes | None) -> str:
    if data is None:
        return "null"
    return f"{show_bytes_of_record(data)} ({len(data):,} byte{'' if len(data) == 1 else 's'})"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
