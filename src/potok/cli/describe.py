"""`potok describe`: the topology of a program, or the one that a query runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import console, print_json
from potok.cli.program import NoSuchProgram, is_path, load_topology, split
from potok.errors import PotokError

app = command_app()

Description = Mapping[str, Any]

_SHAPES = {"source": ("([", "])"), "sink": ("[/", "/]"), "table": ("[(", ")]"), "step": ("[", "]")}


@app.command()
def describe(
    context: typer.Context,
    what: Annotated[str, typer.Argument(metavar="FILE[:NAME]|QUERY", help="A program, or a query that has run.")],
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flow chart.")] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Show the steps of a topology, each under the one that feeds it."""
    description = _description(context, what, broker)
    if as_json:
        print_json(description)
    else:
        lines = as_mermaid(description) if mermaid else as_text(description)
        console().print("\n".join(lines), markup=False)


def _description(context: typer.Context, what: str, broker: str | None) -> Description:
    """A file is loaded; any other word is a query that left its description here, or else a module."""
    from potok.topology.describe import description_of
    from potok.views.progress import read_description
    from potok.views.tables import known_queries

    place, name = split(what)
    if name or is_path(place):
        return description_of(load_topology(what))
    with opened_log(context, broker) as log:
        stored, known = read_description(log, what), known_queries(log)
    if stored is not None:
        return stored
    try:
        return description_of(load_topology(what))
    except NoSuchProgram as error:
        hint = f"there are the queries {', '.join(known)}" if known else "name a Python file; no query has run here yet"
        raise PotokError(f'there is no query, file or module "{what}"', hint=hint) from error


def as_text(description: Description) -> Iterator[str]:
    """Indented lines. What two steps feed stands under both, and is followed further only under the first."""
    steps = description["steps"]
    shown: set[str] = set()

    def show(step: Mapping[str, Any], depth: int) -> Iterator[str]:
        name, detail = step["name"], step["detail"]
        arrow = "-> " if depth > 1 else ""
        again = " (see above)" if name in shown else ""
        yield f"{'  ' * depth}{arrow}{step['kind']} {name}{f': {detail}' if detail else ''}{again}"
        if name not in shown:
            shown.add(name)
            for other in steps:
                if name in other["upstreams"]:
                    yield from show(other, depth + 1)

    yield f"topology {description['name']}"
    for step in steps:
        if not step["upstreams"]:
            yield from show(step, 1)
    yield f"  dead letters: topic {description['dead_letters']}"


def as_mermaid(description: Description) -> Iterator[str]:
    ids = {step["name"]: f"n{index}" for index, step in enumerate(description["steps"])}
    yield "flowchart LR"
    for step in description["steps"]:
        left, right = _SHAPES[step["role"]]
        label = f"{step['name']}<br/><i>{step['kind']}</i>".replace('"', "'")
        yield f'    {ids[step["name"]]}{left}"{label}"{right}'
    for step in description["steps"]:
        for upstream in step["upstreams"]:
            yield f"    {ids[upstream]} --> {ids[step['name']]}"
