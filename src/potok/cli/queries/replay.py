"""`potok replay`: run a program over old records, next to the running query."""

from __future__ import annotations

from typing import Annotated

import typer

from potok.cli.log.timestamps import parse_instant
from potok.cli.options import Broker, Json, command_app, opened_log, settings_of
from potok.cli.output import note
from potok.cli.queries.program import Program, load_topology
from potok.cli.queries.running import display_of, run_with_display

app = command_app()


@app.command()
def replay(
    context: typer.Context,
    program: Program,
    since: Annotated[str, typer.Option("--from", help="Start of the period: yesterday, 2h ago, 2026-05-01T12:30.")],
    into: Annotated[str, typer.Option(help="Prefix of the query name and of all output topics.")],
    until: Annotated[str, typer.Option("--to", help="End of the period (exclusive).")] = "now",
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Run a program over old records into other topics and tables; the running query is not affected.

    Records are selected by timestamp: in each partition from the first one at or after --from to the first one at or
    after --to. External sinks are skipped.
    """
    topology = load_topology(program)
    from potok.runtime.operations.replay import start_replay, with_prefix
    from potok.spark.spark_executor import start_spark

    name = with_prefix(topology, into).name
    begin, end = parse_instant(since), parse_instant(until)
    settings = settings_of(context, broker)
    with opened_log(context, broker) as log:
        display = display_of(as_json=as_json)
        run_with_display(
            log, name, display, lambda: start_replay(topology, log, begin, end, into, settings, start_spark)
        )
    if not as_json:
        note(f"potok tables list --query {name} shows the results; potok offsets reset {name} --forget removes it")
