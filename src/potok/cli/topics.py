"""`potok topics`: list, create, describe, delete."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import note, print_json, print_table, show_bytes
from potok.duration import show_ms, to_ms
from potok.errors import PotokError

if TYPE_CHECKING:
    from potok.log.broker import TopicDescription

app = command_app(no_args_is_help=True, help="List, create, describe and delete topics.")

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]


@app.command("list")
def list_topics(context: typer.Context, broker: Broker = None, as_json: Json = False) -> None:
    """Show every topic with its size."""
    with opened_log(context, broker) as log:
        found = [log.describe_topic(name) for name in sorted(log.topics())]
    if as_json:
        for topic in found:
            print_json(_summary(topic))
    elif not found:
        note("no topics; make one: potok topics create orders --partitions 4")
    else:
        rows = [(t.name, len(t.partitions), t.records, show_bytes(_size(t)), _instant(t.created_at_ms)) for t in found]
        print_table(("topic", "partitions", "records", "size", "created (UTC)"), rows)


@app.command()
def create(
    context: typer.Context,
    topic: Name,
    partitions: Annotated[int, typer.Option(min=1, help="How many partitions; it cannot be changed later.")] = 1,
    retention: Annotated[
        str | None, typer.Option(help='How long records are kept, as "7 days"; default for ever.')
    ] = None,
    retention_bytes: Annotated[int | None, typer.Option(min=1, help="How large a partition may grow.")] = None,
    segment_bytes: Annotated[int | None, typer.Option(min=1, help="When a new segment file is begun.")] = None,
    if_missing: Annotated[bool, typer.Option("--if-missing", help="Leave a topic that exists as it is.")] = False,
    broker: Broker = None,
) -> None:
    """Create a topic."""
    config: dict[str, Any] = {"retention_bytes": retention_bytes}
    if retention is not None:
        config["retention_ms"] = to_ms(retention)
    if segment_bytes is not None:
        config["segment_bytes"] = segment_bytes
    with opened_log(context, broker) as log:
        if not if_missing and log.has_topic(topic):
            raise PotokError(
                f'topic "{topic}" exists already', hint=f"add --if-missing, or first: potok topics delete {topic}"
            )
        log.create_topic(topic, partitions, exist_ok=if_missing, **config)
        there = log.partitions(topic)
    note(f'topic "{topic}" is there, with {there} partition{"s" if there > 1 else ""}')


@app.command()
def describe(context: typer.Context, topic: Name, broker: Broker = None, as_json: Json = False) -> None:
    """Show a topic's partitions and how long it keeps its records."""
    with opened_log(context, broker) as log:
        found = log.describe_topic(topic)
    if as_json:
        print_json(_summary(found) | {"config": _config(found), "partition_offsets": _offsets(found)})
        return
    kept = "for ever" if found.config.retention_ms is None else show_ms(found.config.retention_ms)
    print_table(
        ("topic", "records", "size", "kept", "created (UTC)"),
        [(found.name, found.records, show_bytes(_size(found)), kept, _instant(found.created_at_ms))],
    )
    print_table(
        ("partition", "first offset", "next offset", "size", "segments"),
        [(p.partition, p.start_offset, p.end_offset, show_bytes(p.bytes), p.segments) for p in found.partitions],
    )


@app.command()
def delete(
    context: typer.Context,
    topic: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    broker: Broker = None,
) -> None:
    """Delete a topic and all its records."""
    with opened_log(context, broker) as log:
        records = log.describe_topic(topic).records
        if not yes and not typer.confirm(f'delete topic "{topic}" and its {records:,} records?', err=True):
            raise typer.Exit(1)
        log.delete_topic(topic)
    note(f'topic "{topic}" is deleted')


def _summary(topic: TopicDescription) -> dict[str, object]:
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "records": topic.records,
        "bytes": _size(topic),
        "created_at_ms": topic.created_at_ms,
    }


def _config(topic: TopicDescription) -> dict[str, object]:
    return {
        "segment_bytes": topic.config.segment_bytes,
        "retention_ms": topic.config.retention_ms,
        "retention_bytes": topic.config.retention_bytes,
    }


def _offsets(topic: TopicDescription) -> list[dict[str, int]]:
    return [
        {"partition": p.partition, "start_offset": p.start_offset, "end_offset": p.end_offset, "bytes": p.bytes}
        for p in topic.partitions
    ]


def _size(topic: TopicDescription) -> int:
    return sum(part.bytes for part in topic.partitions)


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
