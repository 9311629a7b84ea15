"""`potok topics`: list, create, describe, compact, archive, delete."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from potok.cli.log.topic_display import (
    archived_file,
    compaction,
    print_archived,
    print_compaction,
    print_description,
    print_list,
)
from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import note, print_json
from potok.duration import to_ms
from potok.errors import PotokError
from potok.log.plain_topics import description, summary

app = command_app(no_args_is_help=True, help="List, create, describe, compact, archive and delete topics.")

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
Seal = Annotated[bool, typer.Option("--seal", help="Seal the active segment first, so that it is included.")]


@app.command("list")
def list_topics(context: typer.Context, broker: Broker = None, as_json: Json = False) -> None:
    """Show every topic with its size."""
    with opened_log(context, broker) as log:
        found = log.describe_topics(sorted(log.topics()))
    if as_json:
        for topic in found:
            print_json(summary(topic))
    elif not found:
        note("no topics; create one: potok topics create orders --partitions 4")
    else:
        print_list(found)


@app.command()
def create(
    context: typer.Context,
    topic: Name,
    partitions: Annotated[int, typer.Option(min=1, help="Number of partitions; cannot be changed later.")] = 1,
    retention: Annotated[
        str | None, typer.Option(help='How long records are kept, such as "7 days"; default forever.')
    ] = None,
    retention_bytes: Annotated[int | None, typer.Option(min=1, help="Maximum size of a partition.")] = None,
    cleanup_policy: Annotated[
        str, typer.Option(help='"compact" keeps the last record of each key; "delete"; or "compact,delete".')
    ] = "delete",
    delete_retention: Annotated[
        str | None, typer.Option(help="How long compaction keeps a tombstone; default 1 day.")
    ] = None,
    min_compaction_lag: Annotated[
        str | None, typer.Option(help="Minimum age of a record before it is compacted.")
    ] = None,
    archive: Annotated[
        str | None, typer.Option(metavar="DIR", help="Archive old segments in this directory instead of deleting them.")
    ] = None,
    segment_bytes: Annotated[int | None, typer.Option(min=1, help="Size at which a segment is sealed.")] = None,
    if_missing: Annotated[bool, typer.Option("--if-missing", help="Do nothing if the topic exists.")] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Create a topic."""
    config: dict[str, Any] = {
        "retention_ms": retention and to_ms(retention),
        "retention_bytes": retention_bytes,
        "cleanup_policy": cleanup_policy,
        "delete_retention_ms": delete_retention and to_ms(delete_retention),
        "min_compaction_lag_ms": min_compaction_lag and to_ms(min_compaction_lag),
        "archive": archive,
        "segment_bytes": segment_bytes,
    }
    with opened_log(context, broker, create=True) as log:
        there = log.has_topic(topic)
        if there and not if_missing:
            raise PotokError(
                f'topic "{topic}" already exists',
                hint=f"add --if-missing, or delete it first: potok topics delete {topic}",
            )
        given = {name: value for name, value in config.items() if value is not None}
        log.create_topic(topic, partitions, exist_ok=if_missing, **given)
        found = log.describe_topic(topic)
    if as_json:
        print_json(description(found) | {"created": not there})
        return
    count = len(found.partitions)
    note(f'topic "{topic}" exists, with {count} partition{"s" if count > 1 else ""}')


@app.command()
def describe(context: typer.Context, topic: Name, broker: Broker = None, as_json: Json = False) -> None:
    """Show the partitions, the retention and the dirty ratio of a topic."""
    with opened_log(context, broker) as log:
        (found,) = log.describe_topics([topic])
    if as_json:
        print_json(description(found))
    else:
        print_description(found)


app.command("show", hidden=True)(describe)


@app.command()
def compact(
    context: typer.Context, topic: Name, seal: Seal = False, broker: Broker = None, as_json: Json = False
) -> None:
    """Compact a topic now. Running queries compact topics automatically."""
    with opened_log(context, broker) as log:
        done = log.compact_topic(topic, seal=seal)
        found = log.describe_topic(topic)
    if as_json:
        for partition in done:
            print_json(compaction(topic, partition))
    else:
        print_compaction(found, done, sealed=seal)


@app.command()
def archive(
    context: typer.Context,
    topic: Name,
    to: Annotated[str | None, typer.Option(metavar="DIR", help="Directory; default: the topic's own archive.")] = None,
    older_than: Annotated[
        str, typer.Option(help='Only segments of this age, such as "7d"; default: all sealed segments.')
    ] = "0s",
    seal: Seal = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Move old segments to Parquet files. Readers of the topic still get their records."""
    with opened_log(context, broker) as log:
        files = log.archive_topic(topic, to, to_ms(older_than), seal=seal)
    if as_json:
        for file in files:
            print_json(archived_file(topic, file))
    else:
        print_archived(topic, files, sealed=seal)


@app.command()
def delete(
    context: typer.Context,
    topic: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Delete a topic and all its records. Archived files are kept."""
    with opened_log(context, broker) as log:
        (found,) = log.describe_topics([topic])
        records = found.records
        most = "" if found.exact else "at most "
        if not yes and not typer.confirm(f'delete topic "{topic}" and its {most}{records:,} records?', err=True):
            raise typer.Exit(1)
        log.delete_topic(topic)
    if as_json:
        print_json({"topic": topic, "records": records, "deleted": True})
    else:
        note(f'topic "{topic}" was deleted')
