"""`potok promote`: replace a query with its shadow."""

from __future__ import annotations

import typer

from potok.cli.options import Broker, Json, command_app, opened_log, settings_of
from potok.cli.output import note, print_json
from potok.cli.queries.program import Program, load_topology
from potok.cli.queries.running import display_of, run_with_display

app = command_app()


@app.command()
def promote(context: typer.Context, program: Program, broker: Broker = None, as_json: Json = False) -> None:
    """Replace the served tables with those that `potok run --shadow` has built.

    Stop both first. The shadow catches up with the query, then both are swapped in one transaction; the next
    `potok run` resumes from there. The old tables are kept on disk until you remove them.
    """
    topology = load_topology(program)
    from potok.runtime.operations.shadow import catch_up, shadow_of, swap, topics_read_ahead
    from potok.spark.spark_executor import start_spark

    with opened_log(context, broker) as log:
        settings = settings_of(context, broker)
        run_with_display(
            log,
            shadow_of(topology).name,
            display_of(as_json=as_json),
            lambda: catch_up(topology, log, settings, start_spark),
        )
        old = swap(log, topology.name, topics_read_ahead(topology))
    if as_json:
        print_json({"event": "promoted", "query": topology.name, "old_cells": old})
    else:
        note(f'query "{topology.name}" has the new tables; the old ones are kept as "{old}"')
