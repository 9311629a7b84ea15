"""`potok events`: list the events of a topic, and check whether a program can read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import counted, note, print_json, print_table, warn

if TYPE_CHECKING:
    from potok.events.check import Found, TopicCheck
    from potok.events.event_type import EventTypes
    from potok.log.broker import Broker as Log

app = command_app(no_args_is_help=True, help="Check the events of a topic.")


@app.callback()
def events() -> None:
    """Check the events of a topic."""


@app.command()
def check(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    program: Annotated[
        str | None,
        typer.Option(
            "--program", metavar="FILE[:NAME]", help="A program that reads the topic as events, or has its aggregate."
        ),
    ] = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """List the types and versions of the events in a topic, missing versions, and records that are not events.

    With a program, also show how it reads each version: unchanged, by its upcasts, or not at all. The exit code is 1 if
    there are records that would become dead letters. The topic is read once, from its beginning to its current end.
    """
    types = None if program is None else _types_read(program, topic)
    with opened_log(context, broker) as log:
        found = _checked(log, topic, types)
    kinds = list(found.kinds(types))
    gaps = found.gaps()
    if as_json:
        for kind in kinds:
            print_json(
                {"type": kind.type, "version": kind.version, **_position_range(kind.found)} | _reading(kind, types)
            )
        for name, versions in gaps.items():
            print_json({"type": name, "missing_versions": versions})
        for reason, bad in found.bad.items():
            print_json({"not_an_event": reason or "other reasons", **_position_range(bad)})
    else:
        if kinds:
            rows = [
                (k.type, k.version, k.found.records, _show_position(k.found.first), k.problem or k.path) for k in kinds
            ]
            heading = ["type", "version", "records", "first at", "read by the program" if types else ""]
            print_table(heading if types else heading[:4], rows if types else [row[:4] for row in rows])
        for name, versions in gaps.items():
            note(f'"{name}" has no events of version {", ".join(map(str, versions))}')
        for reason, bad in found.bad.items():
            first = f"{counted(bad.records, 'record')}, the first at {_show_position(bad.first)}"
            warn(f"{first}: {reason or 'not events, for other reasons'}")
        note(f"{counted(found.records, 'record')} checked")
    if found.more is not None:
        warn(f"{counted(found.more.records, 'event')} of other types are not listed")
    if found.bad or any(kind.problem for kind in kinds):
        raise typer.Exit(1)


def _checked(log: Log, topic: str, types: EventTypes | None) -> TopicCheck:
    from potok.events.check import TopicCheck

    found = TopicCheck("any" if types is None else types.envelope)
    starts, ends = log.earliest_offsets(topic), log.end_offsets(topic)
    for partition, end in ends.items():
        for batch in log.read(topic, partition, starts[partition], end):
            found.add(batch, partition)
    return found


def _types_read(program: str, topic: str) -> EventTypes:
    """Return the types that a program reads from a topic."""
    from potok.cli.queries.program import load_topology
    from potok.errors import PotokError
    from potok.patterns.aggregates.processor import AggregateProcessor
    from potok.topology.nodes import AggregateRoot, StreamSource

    topology = load_topology(program)
    declared = {node.topic: node.events for node in topology.of_type(StreamSource) if node.events is not None}
    for node in topology.of_type(AggregateRoot):
        if isinstance(node.processor, AggregateProcessor):
            declared[node.events_topic] = node.processor.definition.event_types
    if topic not in declared:
        names = ", ".join(f'"{name}"' for name in declared)
        hint = f"it reads events of {names}" if names else f'read them with builder.events("{topic}", types=[...])'
        raise PotokError(f'{program} reads no events of topic "{topic}"', hint=hint)
    return declared[topic]


def _position_range(found: Found) -> dict[str, Any]:
    return {"records": found.records, "first": _show_position(found.first), "last": _show_position(found.last)}


def _show_position(position: tuple[int, int]) -> str:
    """Render a position as `partition@offset`."""
    return f"{position[0]}@{position[1]}"


def _reading(kind: Any, types: EventTypes | None) -> dict[str, str]:
    return {} if types is None else {"problem": kind.problem} if kind.problem else {"read": kind.path}
