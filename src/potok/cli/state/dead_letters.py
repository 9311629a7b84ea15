"""`potok dead-letters`: list, show, replay and purge dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from potok.cli.log.timestamps import parse_instant
from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import counted, note, print_json
from potok.cli.state import dead_letter_display as display
from potok.cli.state.tables import QueryOption, chosen_query
from potok.dead_letters.plain import dead_letter_as_object, replay_as_object, show_position
from potok.errors import QueryError

if TYPE_CHECKING:
    from potok.dead_letters.dead_letters import DeadLetters
    from potok.dead_letters.read import DeadLetter
    from potok.dead_letters.selection import AnyPosition, Selection
    from potok.log.broker import Broker as Log

app = command_app(no_args_is_help=True, help="List, show, replay and purge the dead letters of a query.")

Positions = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PARTITION:]OFFSET", help="Only these, as `list` shows them.", show_default=False),
]
Reason = Annotated[
    str | None, typer.Option(help="Only these: decode, timestamp, error, late, no key, encode, refused.")
]
Step = Annotated[str | None, typer.Option(help="Only those of this step.")]
Topic = Annotated[str | None, typer.Option(help="Only those of records from this topic.")]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only those written since this time: yesterday, 2h ago, 2026-05-01.")
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only those written before this time.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done without doing it.")]


class NoSuchDeadLetter(QueryError):
    """There is no dead letter at this position."""


class NoSuchReason(QueryError):
    """The reason does not exist; an empty list would be misleading."""


@app.command("list")
def list_dead_letters(
    context: typer.Context,
    query: QueryOption = None,
    reason: Reason = None,
    step: Step = None,
    topic: Topic = None,
    since: Since = None,
    until: Until = None,
    everything: Annotated[bool, typer.Option("--all", help="Include those that were replayed.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number per query; the latest are shown.")] = 20,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """List the latest unresolved dead letters, the newest last."""
    from potok.dead_letters.dead_letters import DeadLetters
    from potok.dead_letters.selection import EVERYTHING

    wanted = _wanted(None, reason, step, topic, since, until)
    found = []
    with opened_log(context, broker) as log:
        boxes = [DeadLetters(log, name) for name in _queries(log, query)]
        for box in boxes:
            dead_letters = box.latest(limit, wanted, replayed=everything)
            found += [(box.query, *pair) for pair in zip(dead_letters, box.fates(dead_letters), strict=True)]
        counts = [] if as_json else [_counts(log, box) for box in boxes]
    if as_json:
        for each in found:
            print_json(dead_letter_as_object(*each))
        return
    if found:
        display.print_dead_letters(found)
    for line in filter(None, counts):
        note(line)
    if not found:
        note("no dead letters" + (" of this kind" if wanted != EVERYTHING else ""))


@app.command()
def show(
    context: typer.Context,
    position: Annotated[str, typer.Argument(metavar="[PARTITION:]OFFSET", help="As `list` shows it.")],
    query: QueryOption = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Show one dead letter in detail, with the original bytes."""
    from potok.dead_letters.dead_letters import DeadLetters

    with opened_log(context, broker) as log:
        box = DeadLetters(log, chosen_query(log, query))
        found = _found(box, position)
        fate = box.fates([found])[0]
    if as_json:
        print_json(dead_letter_as_object(box.query, found, fate))
    else:
        display.print_dead_letter(box.query, found, fate)


@app.command()
def replay(
    context: typer.Context,
    positions: Positions = None,
    query: QueryOption = None,
    reason: Reason = None,
    step: Step = None,
    topic: Topic = None,
    since: Since = None,
    until: Until = None,
    dry_run: DryRun = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Append the records of unresolved dead letters to their topics again.

    Without filters, all of them. Each record goes to its original partition, in the order of the original positions,
    with the header potok.replayed, the number of replays. Its dead letters are resolved. If it fails again, it becomes
    a new dead letter.
    """
    from potok.dead_letters.dead_letters import DeadLetters

    wanted = _wanted(positions, reason, step, topic, since, until)
    with opened_log(context, broker) as log:
        box = DeadLetters(log, chosen_query(log, query))
        _check(box, positions)
        done = box.replay(wanted, dry_run=dry_run)
    if as_json:
        print_json(replay_as_object(box.query, done, done=not dry_run))
    else:
        display.print_replay(box.query, done, done=not dry_run)


@app.command()
def purge(
    context: typer.Context,
    positions: Positions = None,
    query: QueryOption = None,
    reason: Reason = None,
    step: Step = None,
    topic: Topic = None,
    since: Since = None,
    until: Until = None,
    everything: Annotated[bool, typer.Option("--all", help="Include those that were replayed.")] = False,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Hide dead letters permanently, and delete them from the log where possible.

    Without filters, all unresolved ones.
    """
    from potok.dead_letters.dead_letters import DeadLetters

    wanted = _wanted(positions, reason, step, topic, since, until)
    with opened_log(context, broker) as log:
        box = DeadLetters(log, chosen_query(log, query))
        _check(box, positions)
        done = box.purge(wanted, replayed=everything, dry_run=True)
        if not dry_run:
            question = f'purge {counted(done.dead_letters, "dead letter")} of query "{box.query}"?'
            if done.dead_letters and not yes and not typer.confirm(question, err=True):
                raise typer.Exit(1)
            done = box.purge(wanted, replayed=everything)
    if as_json:
        counts = {"dead_letters": done.dead_letters, "removed": done.removed}
        print_json({"query": box.query, "done": not dry_run, **counts})
    else:
        display.print_purge(box.query, done, done=not dry_run)


def _wanted(
    positions: list[str] | None,
    reason: str | None,
    step: str | None,
    topic: str | None,
    since: str | None,
    until: str | None,
) -> Selection:
    from potok.dead_letters.selection import Selection
    from potok.operators.core.dead_letters import Reason

    if reason is not None and reason not in list(Reason):
        raise NoSuchReason(f'there is no reason "{reason}"', hint=f"use one of: {', '.join(Reason)}")
    since_ms, until_ms = (None if text is None else parse_instant(text) for text in (since, until))
    return Selection(step, reason, topic, since_ms, until_ms, frozenset(map(_parse_position, positions or ())))


def _queries(log: Log, given: str | None) -> list[str]:
    from potok.snapshots.tables import known_queries

    return [chosen_query(log, given)] if given else known_queries(log)


def _counts(log: Log, box: DeadLetters) -> str:
    """Print the count of each reason, so that a flood of one does not hide the others."""
    from potok.snapshots.progress import read_progress

    progress = read_progress(log, box.query)
    if progress is None or not progress.dead_letters:
        return ""
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(progress.dead_letters_by_reason.items()))
    return f'query "{box.query}": {box.count():,} unresolved, {progress.dead_letters:,} in total: {reasons}'


def _check(box: DeadLetters, positions: list[str] | None) -> None:
    """Raise if one of the given positions has no dead letter."""
    for position in positions or ():
        _found(box, position)


def _found(box: DeadLetters, position: str) -> DeadLetter:
    from potok.dead_letters.selection import Selection

    found = list(box.read(Selection(positions=frozenset({_parse_position(position)})), replayed=True))
    if not found:
        hint = "potok dead-letters list shows them"
        raise NoSuchDeadLetter(f'query "{box.query}" has no dead letter at {position}', hint=hint)
    if len(found) > 1:
        positions = " or ".join(map(show_position, found))
        raise NoSuchDeadLetter(
            f"there are {len(found)} dead letters at offset {position}", hint=f"use one of: {positions}"
        )
    return found[0]


def _parse_position(position: str) -> AnyPosition:
    partition, colon, offset = position.rpartition(":")
    if not offset.isdigit() or (colon and not partition.isdigit()):
        raise typer.BadParameter(f'"{position}" is not OFFSET or PARTITION:OFFSET', param_hint="position")
    return (int(partition) if colon else None), int(offset)
