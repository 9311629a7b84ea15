"""`potok diff`: show what a program changes since the last run of its query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import note, print_json, print_table
from potok.cli.queries.program import Program, load_topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from potok.topology.compare import Change

app = command_app()


@app.command()
def diff(context: typer.Context, program: Program, broker: Broker = None, as_json: Json = False) -> None:
    """Show what differs from the last run of the query, and whether its state is compatible.

    Exits with 1 if it is not: `potok run` would refuse to start.
    """
    from potok.log.open import NoLogThere
    from potok.runtime.queries.prepare import changes_of
    from potok.snapshots.ledger_view import read_entry

    topology = load_topology(program)
    try:
        with opened_log(context, broker) as log:
            has_run = read_entry(log, topology.name) is not None
            changes = changes_of(topology, log)
    except NoLogThere:
        has_run, changes = False, []
    fits = all(change.fits for change in changes)
    if as_json:
        for change in changes:
            print_json({"step": change.step, "what": change.what, "fits": change.fits})
    elif changes:
        print_changes(changes)
    if not as_json:
        note(_verdict(topology.name, has_run=has_run, changed=bool(changes), fits=fits))
    if not fits:
        raise typer.Exit(1)


def print_changes(changes: Sequence[Change]) -> None:
    rows = [("fits" if change.fits else "does not fit", change.step, change.what) for change in changes]
    print_table(("state", "step", "change"), rows)


def _verdict(query: str, *, has_run: bool, changed: bool, fits: bool) -> str:
    if not has_run:
        return f'query "{query}" has not run here yet: it starts with empty tables'
    if not changed:
        return f'nothing changed since query "{query}" ran last'
    if fits:
        return f'the state of query "{query}" is compatible: it resumes where it stopped'
    return (
        f'the state of query "{query}" is not compatible: give the changed step another name=, or the query '
        "another name, to rebuild its state"
    )
