"""`potok replay`: run a program over old records, beside the query that runs it on new ones."""

from __future__ import annotations

from typing import Annotated

import typer

from potok.cli.log.timestamps import parse_instant
from potok.cli.options import Broker, Json, command_app, opened_log, settings_of
from potok.cli.output import note
from potok.cli.queries.program import Program, load_topology
from potok.cli.queries.running import display_of, run_shown

app = command_app()


@app.command()
def replay(
    context: typer.Context,
    program: Program,
    since: Annotated[str, typer.Option("--from", help="Where to begin: yesterday, 2h ago, 2026-05-01T12:30.")],
    into: Annotated[str, typer.Option(help="Stands before the names of the query and of all topics it writes.")],
    until: Annotated[str, typer.Option("--to", help="Where to end (not included).")] = "now",
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Run a program over old records into other topics and tables; the running query is not disturbed.

    Records are chosen by their timestamps: in each partition from the first one at or after --from to the first one at
    or after --to. What the program gives to somebody outside the log is left out.
    """
    topology = load_topology(program)
    from potok.runtime.operations.replay import beside, start_replay
    from potok.spark.spark_executor import start_spark

    name = beside(topology, into).name
    begin, end = parse_instant(since), parse_instant(until)
    settings = settings_of(context, broker)
    with opened_log(context, broker) as log:
        display = display_of(as_json=as_json)
        run_shown(log, name, display, lambda: start_replay(topology, log, begin, end, into, settings, start_spark))
    if not as_json:
        note(f"potok tables list --query {name} shows what came out; potok offsets reset {name} --forget removes it")
