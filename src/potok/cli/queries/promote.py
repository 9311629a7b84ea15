"""`potok promote`: put the shadow of a query in its place."""

from __future__ import annotations

import typer

from potok.cli.options import Broker, Json, command_app, opened_log, settings_of
from potok.cli.output import note, print_json
from potok.cli.queries.program import Program, load_topology
from potok.cli.queries.running import display_of, run_shown

app = command_app()


@app.command()
def promote(context: typer.Context, program: Program, broker: Broker = None, as_json: Json = False) -> None:
    """Put the tables that `potok run --shadow` has built in the place of those that are served.

    Stop both first. The shadow is run up to where the query stands, and then both change places in one moment; the next
    `potok run` goes on from there. The old tables stay on the disk until they are removed by hand.
    """
    topology = load_topology(program)
    from potok.runtime.operations.shadow import catch_up, shadow_of, swap
    from potok.spark.spark_executor import start_spark

    with opened_log(context, broker) as log:
        settings = settings_of(context, broker)
        run_shown(
            log,
            shadow_of(topology).name,
            display_of(as_json=as_json),
            lambda: catch_up(topology, log, settings, start_spark),
        )
        old = swap(log, topology.name)
    if as_json:
        print_json({"event": "promoted", "query": topology.name, "old_cells": old})
    else:
        note(
            f'query "{topology.name}" has the new tables; what the old ones were made of is kept under the name "{old}"'
        )
