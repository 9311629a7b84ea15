"""`potok describe`: show the topology of a program or of a query."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import console, print_json
from potok.cli.queries.program import NoSuchProgram, is_path, load_topology, split
from potok.errors import PotokError

if TYPE_CHECKING:
    from potok.topology.describe import Description

app = command_app()


@app.command()
def describe(
    context: typer.Context,
    what: Annotated[str, typer.Argument(metavar="FILE[:NAME]|QUERY", help="A program, or a query that has run.")],
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flow chart.")] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Show the steps of a topology, each below its upstream step."""
    description = _description(context, what, broker)
    if as_json:
        print_json(description)
    else:
        from potok.topology.describe import as_mermaid, as_text

        console().print(as_mermaid(description) if mermaid else as_text(description), markup=False)


def _description(context: typer.Context, what: str, broker: str | None) -> Description:
    """Load a file; any other name is a query that has run, or a module."""
    from potok.log.open import NoLogThere
    from potok.snapshots.progress import read_description
    from potok.snapshots.tables import known_queries
    from potok.topology.describe import description_of

    source, name = split(what)
    if name or is_path(source):
        return description_of(load_topology(what))
    stored: Description | None = None
    known: list[str] = []
    with suppress(NoLogThere), opened_log(context, broker) as log:
        stored, known = read_description(log, what), known_queries(log)
    if stored is not None:
        return stored
    try:
        return description_of(load_topology(what))
    except NoSuchProgram as error:
        hint = f"known queries: {', '.join(known)}" if known else "name a Python file; no query has run here yet"
        raise PotokError(f'there is no query, file or module "{what}"', hint=hint) from error
