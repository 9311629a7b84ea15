"""`potok offsets`: show and reset the offsets of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.log.timestamps import UnknownInstant, parse_instant
from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import note, print_json, print_table
from potok.cli.state.tables import chosen_query, show_instant
from potok.errors import QueryError

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.runtime.operations.reset_offsets import Move

app = command_app(no_args_is_help=True, help="Show and reset the offsets of a query.")

QueryName = Annotated[str | None, typer.Argument(metavar="[QUERY]", help="The query; optional if there is only one.")]


POSITIONS = "earliest, latest, an offset, or a time: now, yesterday, 2h ago, 2026-05-01T12:30"


class InvalidPosition(QueryError):
    """The text is not an offset or a timestamp."""


@app.command()
def show(context: typer.Context, query: QueryName = None, broker: Broker = None, as_json: Json = False) -> None:
    """Show the next offset, the offsets in the log and the lag of each partition."""
    with opened_log(context, broker) as log:
        name = chosen_query(log, query, option="")
        rows = _standing(log, name)
    if as_json:
        for row in rows:
            print_json({"query": name, **row})
        return
    columns = ("topic", "partition", "offset", "first", "end", "lag", "stream time (UTC)")
    print_table(columns, ([row[field] if row[field] is not None else "" for field in _FIELDS] for row in rows))
    note(f'query "{name}": {sum(row["lag"] for row in rows):,} records are waiting')


_FIELDS = ("topic", "partition", "offset", "first_offset", "end_offset", "lag", "stream_time")


def _standing(log: Log, query: str) -> list[dict[str, Any]]:
    from potok.snapshots.ledger_view import read_entry

    entry = read_entry(log, query)
    assert entry is not None
    rows: list[dict[str, Any]] = []
    for topic, parts in sorted(entry.offsets.topics.items()):
        firsts, ends = log.start_offsets(topic), log.end_offsets(topic)
        for part, offset in sorted(parts.items()):
            time = entry.stream_times.get(topic, {}).get(part)
            rows.append(
                {
                    "topic": topic,
                    "partition": part,
                    "offset": offset,
                    # None if the topic was created again with fewer partitions.
                    "first_offset": firsts.get(part),
                    "end_offset": ends.get(part),
                    "lag": max(0, ends.get(part, offset) - offset),
                    "stream_time": None if time is None else show_instant(time),
                    "stream_time_ms": time,
                }
            )
    return rows


@app.command()
def reset(
    context: typer.Context,
    query: QueryName = None,
    to: Annotated[
        str | None,
        typer.Option(help="earliest, latest, an offset, or a time: yesterday, 2h ago, 2026-05-01."),
    ] = None,
    topic: Annotated[str | None, typer.Option(help="Only this topic.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Only this partition.")] = None,
    drop_state: Annotated[
        bool, typer.Option("--drop-state", help="Delete the tables, and rebuild them from the new offset.")
    ] = False,
    keep_state: Annotated[bool, typer.Option("--keep-state", help="Keep the tables unchanged.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Remove the query; its topics are kept.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the new offsets without storing them.")] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Reset the offsets of a stopped query."""
    from potok.runtime.operations import reset_offsets as repair

    if (to is None) == (not forget):
        raise InvalidPosition(
            "the new offset is missing", hint="--to earliest, --to latest, --to 120, --to yesterday; or --forget"
        )
    if drop_state and keep_state:
        raise InvalidPosition(
            "--drop-state and --keep-state exclude each other", hint="pass --drop-state or --keep-state"
        )
    with opened_log(context, broker) as log:
        name = chosen_query(log, query, option="")
        if forget:
            _forget(log, name, dry_run=dry_run)
            return
        position = str(to)

        def wanted() -> dict[str, dict[int, int]]:
            return _wanted(log, name, position, topic, partition)

        if dry_run:
            moves = repair.plan_moves(log, name, wanted())
        else:
            moves = repair.reset(log, name, wanted, drop_state=drop_state, keep_state=keep_state)
        tables = repair.tables_of(log, name)
    _report(name, moves, dry_run=dry_run, as_json=as_json)
    if dry_run and tables and not drop_state and not keep_state:
        note(f"it has the tables {', '.join(tables)}: --drop-state or --keep-state will be required")


def _forget(log: Log, name: str, *, dry_run: bool) -> None:
    from potok.runtime.operations import reset_offsets as repair

    if not dry_run:
        repair.forget(log, name)
    note(f'query "{name}" {"would be" if dry_run else "was"} removed; its topics are kept')


def _wanted(log: Log, query: str, to: str, topic: str | None, partition: int | None) -> dict[str, dict[int, int]]:
    from potok.runtime.planning.start_offsets import check_topics
    from potok.snapshots.ledger_view import read_entry

    entry = read_entry(log, query)
    assert entry is not None
    known = entry.offsets.topics
    if topic is not None and topic not in known:
        raise InvalidPosition(f'query "{query}" does not read "{topic}"', hint=f"it reads: {', '.join(sorted(known))}")
    check_topics(log, query, sorted(known), entry)
    chosen = [topic] if topic is not None else sorted(known)
    if partition is not None and not any(partition in known[name] for name in chosen):
        raise InvalidPosition(f"there is no partition {partition}", hint="potok offsets show lists them")
    return {
        name: {part: offset_of(log, name, part, to) for part in known[name] if partition in (None, part)}
        for name in chosen
    }


def offset_of(log: Log, topic: str, partition: int, to: str) -> int:
    """Return the offset for `--to`: earliest, latest, an offset, or that of a timestamp."""
    if to == "earliest":
        return log.earliest_offsets(topic)[partition]
    if to == "latest":
        return log.end_offsets(topic)[partition]
    if to.isdigit() and len(to) < len("1700000000000"):
        return int(to)
    try:
        return log.offset_at(topic, partition, parse_instant(to))
    except UnknownInstant as error:
        raise InvalidPosition(f'"{to}" is not an offset or a time', hint=POSITIONS) from error


def _report(query: str, moves: list[Move], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        for move in moves:
            topic_partition = {"topic": move.topic, "partition": move.partition}
            print_json(
                {"query": query, **topic_partition, "before": move.before, "after": move.after, "done": not dry_run}
            )
        return
    rows = ((move.topic, move.partition, move.before, move.after, move.after - move.before) for move in moves)
    print_table(("topic", "partition", "before", "after", "moves by"), rows)
    if dry_run:
        note(f'nothing was changed; omit --dry-run to reset query "{query}"')
    else:
        note(f'query "{query}" was reset; output of records that it reads again is repeated')
