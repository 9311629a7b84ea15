"""`potok state`: show, backup, restore, verify, reshard. Spark is not needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import counted, note, print_json, print_table, requests_text, show_bytes, show_bytes_of_record
from potok.cli.queries.program import Program, load_topology
from potok.cli.state.tables import chosen_query

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.state.backup import Manifest
    from potok.state.verify import Findings

app = command_app(no_args_is_help=True, help="Show, back up, verify and reshard the state of queries.")

QueryName = Annotated[str | None, typer.Argument(metavar="[QUERY]", help="The query; optional if there is only one.")]

MOST_DAMAGE = 50
"""Maximum number of damaged cells to list."""


@app.command()
def show(context: typer.Context, query: QueryName = None, broker: Broker = None, as_json: Json = False) -> None:
    """Show the location of the state of a query and the contents of its shards."""
    with opened_log(context, broker) as log:
        found = _status_of(log, chosen_query(log, query, option=""))
    if as_json:
        print_json(found)
        return
    rows = [
        (shard["shard"], table, count) for shard in found["shards"] for table, count in sorted(shard["tables"].items())
    ]
    if rows:
        print_table(("shard", "table", "cells"), rows)
    size = show_bytes(sum(shard["bytes"] for shard in found["shards"]))
    where = f"batch {found['batch']}, at {found['location']}"
    note(f'query "{found["query"]}": {counted(len(found["shards"]), "shard")}, {size}, {where}')
    if found["object_requests"]:
        note(f"requests of all batches: {requests_text(found['object_requests'])}")


def _status_of(log: Log, query: str) -> dict[str, Any]:
    from potok.snapshots.ledger_view import read_entry
    from potok.snapshots.progress import read_progress
    from potok.snapshots.state_location import state_of
    from potok.state.store import StateMissing

    entry = read_entry(log, query)
    assert entry is not None
    state, progress = state_of(log, query).with_password(), read_progress(log, query)

    def shards() -> Iterator[dict[str, Any]]:
        for shard in range(entry.shards):
            try:
                store = state.store(shard, create=False)
            except StateMissing:
                yield {"shard": shard, "bytes": 0, "tables": {}}
                continue
            tables = {table: store.entries(table) for table in store.tables()}
            yield {"shard": shard, "bytes": store.size_bytes(), "tables": tables}

    return {
        "query": query,
        "location": str(state.where),
        "cells": state.name,
        "start": entry.epoch,
        "batch": entry.batch,
        "shards": list(shards()),
        "object_requests": {} if progress is None else progress.object_requests,
    }


@app.command()
def backup(
    context: typer.Context,
    to: Annotated[Path, typer.Option(metavar="DIR", help="A directory that does not exist yet.")],
    query: QueryName = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Back up the state of a query with its batch and offsets, whether or not it is running."""
    from potok.runtime.operations import backup as engine

    with opened_log(context, broker) as log:
        manifest = engine.backup(log, chosen_query(log, query, option=""), to)
    _report(manifest, to, as_json, f'query "{manifest.query}" as of batch {manifest.entry.batch} is in {to}')


@app.command()
def restore(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory created by `potok state backup`.")],
    state: Annotated[
        str, typer.Option(metavar="URL", help="State URL of the restored query; default: unchanged.")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace the existing state of the query.")] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Replace the state of a query with a backup. The query resumes after the batch of the backup and repeats its
    output since then."""
    from potok.runtime.operations import backup as engine

    with opened_log(context, broker, create=True) as log:
        manifest = engine.restore(log, directory, state, force=force)
    _report(manifest, directory, as_json, f'query "{manifest.query}" resumes after batch {manifest.entry.batch}')


def _report(manifest: Manifest, directory: Path, as_json: bool, text: str) -> None:
    size = sum(file.size for file in manifest.files)
    if as_json:
        facts = {"query": manifest.query, "batch": manifest.entry.batch, "shards": len(manifest.files)}
        print_json(facts | {"cells": manifest.cells, "bytes": size, "directory": str(directory)})
    else:
        shards, cells = counted(len(manifest.files), "shard"), counted(manifest.cells, "cell")
        note(f"{text}: {shards}, {cells}, {show_bytes(size)}")


@app.command()
def verify(
    context: typer.Context,
    query: QueryName = None,
    of_backup: Annotated[Path | None, typer.Option("--backup", metavar="DIR", help="Verify a backup instead.")] = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Verify every page and every cell; list damaged ones, and exit with 1 if there are any."""
    if of_backup is not None:
        from potok.runtime.operations.backup import verify_backup

        name, found = str(of_backup), verify_backup(of_backup)
    else:
        with opened_log(context, broker) as log:
            name = chosen_query(log, query, option="")
            found = _verified(log, name)
    _print_findings(name, found, as_json)
    if not found.sound:
        raise typer.Exit(1)


def _verified(log: Log, query: str) -> Findings:
    from potok.snapshots.ledger_view import read_entry
    from potok.snapshots.state_location import state_of
    from potok.state.verify import verify as look

    entry = read_entry(log, query)
    assert entry is not None
    return look(state_of(log, query).with_password(), entry.shards)


def _print_findings(name: str, found: Findings, as_json: bool) -> None:
    damaged = [(d.shard, d.table, show_bytes_of_record(d.key)) for d in found.damaged]
    if as_json:
        cells = [{"shard": shard, "table": table, "key": key} for shard, table, key in damaged]
        shards = [asdict(shard) for shard in found.shards]
        facts = {"name": name, "cells": found.cells, "bytes": found.bytes}
        print_json(facts | {"damaged": cells, "damaged_shards": shards})
        return
    for shard in found.shards:
        note(f"shard {shard.shard} at {shard.location}: {shard.why}\n  hint: {shard.hint}")
    if damaged:
        print_table(("shard", "table", "key"), damaged[:MOST_DAMAGE])
    if len(damaged) > MOST_DAMAGE:
        note(f"and {len(damaged) - MOST_DAMAGE:,} more; --json lists all")
    looked = f"{name}: {counted(found.cells, 'cell')}, {show_bytes(found.bytes)}"
    unread = f", and {counted(len(found.shards), 'shard')} that cannot be read" if found.shards else ""
    note(f"{looked}, {f'{len(damaged):,} damaged' if damaged else 'none damaged'}{unread}")


@app.command()
def reshard(
    context: typer.Context,
    program: Program,
    shards: Annotated[int, typer.Option(min=1, help="The new number of shards.")],
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Rewrite the state of a stopped query for another number of shards. The program determines the shard of each
    cell."""
    from potok.runtime.operations import reshard as engine

    topology = load_topology(program)
    with opened_log(context, broker) as log:
        before = engine.reshard(topology, log, shards)
    if as_json:
        print_json({"query": topology.name, "before": before, "shards": shards})
    else:
        note(f'the state of query "{topology.name}" now has {counted(shards, "shard")}, before {before}')
