"""`potok groups`: list consumer groups and queues, show their lag, and reset them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import note, print_json, print_table
from potok.cli.state.offsets import offset_of
from potok.clock import now_ms
from potok.errors import PotokError
from potok.log.plain_groups import members, queue_standing, standing

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.log.consumer_groups import GroupDescription
    from potok.log.queues.queue_store import QueueStore

app = command_app(no_args_is_help=True, help="List consumer groups and queues, show their lag, and reset them.")

Name = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]


class NoSuchGroup(PotokError):
    """The group does not exist."""

    def __init__(self, group: str, hint: str = "potok groups list shows all groups") -> None:
        super().__init__(f'there is no group "{group}"', hint=hint)


class NotInTheLog(PotokError):
    """The offset is outside the partition."""

    def __init__(self, topic: str, partition: int, offset: int, first: int, end: int) -> None:
        super().__init__(
            f'topic "{topic}" partition {partition} has no offset {offset}',
            hint=f"offsets go from {first} to {end} (the next record); use --partition, or a time such as yesterday",
        )


@app.command("list")
def list_groups(context: typer.Context, broker: Broker = None, as_json: Json = False) -> None:
    """Show all groups with their topics, members and lag."""
    from potok.log.queues.queue_store import queues

    with opened_log(context, broker) as log:
        rows = [_summary(log, log.describe_group(name)) for name in log.groups()]
        rows += [_queue_summary(log, name, topics) for name, topics in queues(log).items()]
    if as_json:
        for row in rows:
            print_json(row)
    elif rows:
        headings = ("group", "kind", "topics", "members", "lag")
        rendered = ((r["group"], r["kind"], ", ".join(r["topics"]), _or_dash(r["members"]), r["lag"]) for r in rows)
        print_table(headings, rendered)
    else:
        note("no groups; create one with its first member: potok consume orders --group billing")


@app.command()
def show(context: typer.Context, group: Name, broker: Broker = None, as_json: Json = False) -> None:
    """Show the members of a group, its partitions and their lag."""
    from potok.log.queues.queue_store import queues

    with opened_log(context, broker) as log:
        described = log.describe_group(group)
        partitions = standing(log, described)
        records = {topic: queue_standing(log, group, topic, now_ms()) for topic in queues(log).get(group, [])}
        known = bool(described.members or described.committed)
    if not known and not records:
        raise NoSuchGroup(group)
    if as_json:
        print_json({"group": group, "members": members(described), "partitions": partitions, "queues": records})
        return
    if known:
        _print_members(described, partitions)
    for topic, rows in records.items():
        print_table((f'queue over "{topic}": partition', "ready", "out", "waiting"), [tuple(r.values()) for r in rows])


@app.command()
def reset(
    context: typer.Context,
    group: Name,
    to: Annotated[str, typer.Option(help="earliest, latest, an offset, or a time: yesterday, 2h ago, 2026-05-01.")],
    topic: Annotated[
        str | None, typer.Option(help="Only this topic; may be one that the group has not read yet.")
    ] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Only this partition.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the new offsets without storing them.")] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Reset the offsets of a group without live members, or of a queue without records in flight."""
    with opened_log(context, broker) as log:
        moves = _moves(log, group, to, topic, partition)
        if not dry_run:
            _move(log, group, moves)
    done = {"done": not dry_run}
    if as_json:
        for move in moves:
            print_json({"group": group, **move, **done})
        return
    rows = [(m["topic"], m["partition"], _or_dash(m["before"]), m["after"]) for m in moves]
    print_table(("topic", "partition", "before", "after"), rows)
    note(f'nothing was changed; omit --dry-run to reset group "{group}"' if dry_run else f'group "{group}" was reset')


def _summary(log: Log, group: GroupDescription) -> dict[str, Any]:
    lag = sum(row["lag"] or 0 for row in standing(log, group))
    return {
        "group": group.group,
        "kind": "consumers",
        "topics": group.topics,
        "members": len(group.members),
        "lag": lag,
    }


def _queue_summary(log: Log, group: str, topics: list[str]) -> dict[str, Any]:
    rows = [row for topic in topics for row in queue_standing(log, group, topic, now_ms())]
    lag = sum(row["ready"] + row["out"] + row["waiting"] for row in rows)
    return {"group": group, "kind": "queue", "topics": topics, "members": None, "lag": lag}


def _print_members(group: GroupDescription, partitions: list[dict[str, Any]]) -> None:
    fields = ("topic", "partition", "committed", "end", "lag", "member")
    print_table(fields, ([_or_dash(row[field]) for field in fields] for row in partitions))
    lag = sum(row["lag"] or 0 for row in partitions)
    count = len(group.members)
    living = "no live member" if count == 0 else "1 live member" if count == 1 else f"{count} live members"
    note(f'group "{group.group}": {living}, {lag:,} record{"" if lag == 1 else "s"} waiting')


def _moves(log: Log, group: str, to: str, topic: str | None, partition: int | None) -> list[dict[str, Any]]:
    from potok.log.errors import TopicNotFound
    from potok.log.queues.queue_store import queues

    before = dict(log.describe_group(group).committed)
    for name in queues(log).get(group, []):
        before[name] = {part: state.low for part, state in _marks(log, group, name).states().items()}
    if topic is None and not before:
        raise NoSuchGroup(group, "name a topic: --topic orders")
    moves: list[dict[str, Any]] = []
    for name in sorted(before) if topic is None else [topic]:
        firsts, ends = log.earliest_offsets(name), log.end_offsets(name)
        if partition is not None and partition not in ends:
            raise TopicNotFound(name, partition, len(ends))
        for part in sorted(ends) if partition is None else [partition]:
            after = offset_of(log, name, part, to)
            if not firsts[part] <= after <= ends[part]:
                raise NotInTheLog(name, part, after, firsts[part], ends[part])
            moves.append({"topic": name, "partition": part, "before": before.get(name, {}).get(part), "after": after})
    return moves


def _move(log: Log, group: str, moves: list[dict[str, Any]]) -> None:
    from potok.log.errors import GroupHasMembers
    from potok.log.queues.queue_store import queues

    described = log.describe_group(group)
    if described.members:
        raise GroupHasMembers(group, len(described.members))
    queued = queues(log).get(group, [])
    for topic in sorted({move["topic"] for move in moves}):
        offsets = {move["partition"]: move["after"] for move in moves if move["topic"] == topic}
        if topic in queued:
            _marks(log, group, topic).restart(offsets, now_ms())
        if topic not in queued or topic in described.committed:
            log.commit(group, topic, offsets)


def _marks(log: Log, group: str, topic: str) -> QueueStore:
    from potok.log.queues.queue_store import QueueStore

    return QueueStore(log, topic, group, "", "earliest")


def _or_dash(value: Any) -> Any:
    return "-" if value is None else value
