"""`potok checkpoints`: where queries would resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import counted, note, print_json, print_table, show_bytes
from potok.cli.state.tables import chosen_query, show_instant

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.snapshots.checkpoints import Checkpoint

app = command_app(no_args_is_help=True, help="Show where queries would resume.")


@app.command("list")
def list_checkpoints(context: typer.Context, broker: Broker = None, as_json: Json = False) -> None:
    """Show the last committed batch of every query."""
    from potok.snapshots.checkpoints import read_checkpoint
    from potok.snapshots.tables import known_queries

    with opened_log(context, broker) as log:
        found = [read_checkpoint(log, name) for name in known_queries(log)]
        rendered = [summary(log, checkpoint) for checkpoint in found]
    if as_json:
        for row in rendered:
            print_json(row)
    elif not rendered:
        note("no query has run here yet: potok run shop.py")
    else:
        columns = ("query", "state", "start", "batch", "committed (UTC)", "pending", "lag", "state size")
        print_table(columns, map(_row, rendered))


@app.command()
def show(
    context: typer.Context,
    query: Annotated[
        str | None, typer.Argument(metavar="[QUERY]", help="The query; optional if there is only one.")
    ] = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Show the ledger of a query: batch, offsets, watermarks, shards, and a pending batch."""
    from potok.snapshots.checkpoints import read_checkpoint

    with opened_log(context, broker) as log:
        checkpoint = read_checkpoint(log, chosen_query(log, query, option=""))
        first, offsets = summary(log, checkpoint), _offsets(log, checkpoint)
    whole = first | {"offsets": offsets, "watermarks": _watermarks(checkpoint), "tables": _tables(checkpoint)}
    whole |= {"shard_bytes": list(checkpoint.shards)}
    whole |= {"void": [{"start": void.epoch, "after_batch": void.committed} for void in checkpoint.voids]}
    if as_json:
        print_json(whole)
        return
    print_table(("query", "state", "start", "batch", "committed (UTC)", "pending", "lag", "state size"), [_row(first)])
    if offsets:
        columns = ("topic", "partition", "offset", "end", "lag", "stream time (UTC)")
        print_table(columns, ([row[name] for name in _OFFSETS] for row in offsets))
    if whole["watermarks"]:
        print_table(("step", "watermark (UTC)", "next (UTC)"), map(_watermark_row, whole["watermarks"]))
    if whole["tables"]:
        print_table(("table", "keys"), (tuple(row.values()) for row in whole["tables"]))
    _print_notes(checkpoint)


_OFFSETS = ("topic", "partition", "offset", "end_offset", "lag", "stream_time")


def summary(log: Log, checkpoint: Checkpoint) -> dict[str, Any]:
    """Return a checkpoint as plain data."""
    entry, progress, pending = checkpoint.entry, checkpoint.progress, checkpoint.pending
    ends = log.end_offsets_of(sorted(entry.offsets.topics))
    return {
        "query": checkpoint.query,
        "state": _state(log, checkpoint),
        "start": entry.epoch,
        "batch": entry.batch,
        "committed_at_ms": progress.committed_at_ms if progress else None,
        "ended_in_order": entry.clean,
        "empty_batches": entry.offsets.empty_batches,
        "lag": entry.offsets.pending(ends),
        "shards": entry.shards,
        "state_in": checkpoint.state,
        "state_bytes": sum(checkpoint.shards),
        "pending": None if pending is None else {"batch": pending.number, "records": pending.records},
    }


def _state(log: Log, checkpoint: Checkpoint) -> str:
    """Return the recorded state of a query, or "died" if its lock shows that the process is gone. If the ledger is on a
    server, the process may be on any machine, so the recorded state is returned."""
    from potok.runtime.queries.directory import query_directory
    from potok.runtime.queries.lock import is_held

    state = checkpoint.progress.state if checkpoint.progress else "unknown"
    if state not in ("starting", "running") or log.home_url:
        return state
    return state if is_held(query_directory(log, checkpoint.query)) else "died"


def _row(row: dict[str, Any]) -> tuple[object, ...]:
    pending = row["pending"]
    return (
        row["query"],
        row["state"],
        row["start"],
        row["batch"],
        show_instant(row["committed_at_ms"]) if row["committed_at_ms"] else "",
        "" if pending is None else f"batch {pending['batch']}, {counted(pending['records'], 'record')}",
        row["lag"],
        show_bytes(row["state_bytes"]),
    )


def _offsets(log: Log, checkpoint: Checkpoint) -> list[dict[str, Any]]:
    entry, rows = checkpoint.entry, []
    for topic, parts in sorted(entry.offsets.topics.items()):
        ends = log.end_offsets(topic)
        for part, offset in sorted(parts.items()):
            time = entry.stream_times.get(topic, {}).get(part)
            rows.append(
                {
                    "topic": topic,
                    "partition": part,
                    "offset": offset,
                    "end_offset": ends[part],
                    "lag": max(0, ends[part] - offset),
                    "stream_time": "" if time is None else show_instant(time),
                    "stream_time_ms": time,
                    "idle": (topic, part) in entry.offsets.idle,
                }
            )
    return rows


def _watermarks(checkpoint: Checkpoint) -> list[dict[str, Any]]:
    """Return the watermark of each step in the last batch, and its next window end or timer."""
    entry = checkpoint.entry
    steps = sorted({*entry.watermarks, *entry.next_ends, *entry.next_timers})
    return [
        {
            "step": step,
            "watermark_ms": entry.watermarks.get(step),
            "next_end_ms": entry.next_ends.get(step),
            "next_alarm_ms": entry.next_timers.get(step),
        }
        for step in steps
    ]


def _watermark_row(row: dict[str, Any]) -> tuple[str, str, str]:
    due = row["next_end_ms"] if row["next_end_ms"] is not None else row["next_alarm_ms"]
    rendered = ["" if at is None else _instant(at) for at in (row["watermark_ms"], due)]
    return row["step"], rendered[0], rendered[1]


def _instant(at_ms: int) -> str:
    """Render a watermark."""
    from potok.operators.windows.expiry import NEVER

    return "not started" if at_ms <= NEVER else show_instant(at_ms)


def _tables(checkpoint: Checkpoint) -> list[dict[str, Any]]:
    return [{"table": table, "keys": count} for table, count in sorted(checkpoint.keys.items())]


def _print_notes(checkpoint: Checkpoint) -> None:
    entry = checkpoint.entry
    sizes = ", ".join(map(show_bytes, checkpoint.shards))
    note(f"state: {counted(entry.shards, 'shard')} ({sizes}) in {checkpoint.state}")
    for void in checkpoint.voids:
        note(f"start {void.epoch} died: its writes after batch {void.committed} have no effect")
    if checkpoint.pending is not None:
        note(f"batch {checkpoint.pending.number} is pending; the next start runs it again")
