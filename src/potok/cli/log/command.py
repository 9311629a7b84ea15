"""`potok command`: send commands to aggregates."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import console, note, print_json, print_table
from potok.errors import PotokError, QueryError

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.patterns.aggregates.client import Found, Sent
    from potok.patterns.aggregates.describe import AggregateDescription

app = command_app(no_args_is_help=True, help="Send commands to aggregates and list what they accept.")


class BadCommand(PotokError):
    """A command that cannot be sent."""


class NotAccepted(PotokError):
    """A command that was not accepted."""


@app.command("list")
def list_commands(context: typer.Context, broker: Broker = None, as_json: Json = False) -> None:
    """Show the commands of all aggregates in the log."""
    with opened_log(context, broker) as log:
        known = _known(log)
    rows = [(one.name, name, command.doc) for one in known.values() for name, command in sorted(one.commands.items())]
    if as_json:
        for aggregate, name, doc in rows:
            print_json({"aggregate": aggregate, "command": name, "doc": doc})
    elif not rows:
        note("no aggregates; builder.aggregate(Order) in a program adds one, and potok run PROGRAM starts it")
    else:
        print_table(("aggregate", "command", "what it does"), [(a, n, d.partition("\n")[0]) for a, n, d in rows])


@app.command()
def send(
    context: typer.Context,
    aggregate: Annotated[str, typer.Argument(help="The name of the aggregate: orders.")],
    aggregate_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the aggregate: ord_1.")],
    command: Annotated[str, typer.Argument(help="The name of the command: PayOrder.")],
    data: Annotated[str, typer.Argument(help="Its fields as a JSON object.")] = "{}",
    key: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Idempotency key: the same key runs the command once.")
    ] = None,
    expect: Annotated[
        str, typer.Option(metavar="VERSION", help="Version that the aggregate must have: a number, any, none, exists.")
    ] = "any",
    wait: Annotated[str, typer.Option(metavar="DURATION", help="How long to wait for the result.")] = "10 seconds",
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Send one command and print its result. The exit code is 1 if it is not accepted."""
    from potok.duration import to_seconds
    from potok.patterns.aggregates.client import append_command, wait_for_result
    from potok.patterns.aggregates.messages import command_record, expectation

    try:
        expectation(expect)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--expect") from error
    fields, command_id, seconds = _fields(data), key or uuid.uuid4().hex, to_seconds(wait)
    with opened_log(context, broker) as log:
        _check(log, aggregate, command)
        record = command_record(aggregate_id, command, fields, command_id=command_id, expected_version=expect)
        sent = append_command(log, aggregate, command_id, record)
        found = wait_for_result(log, sent, seconds)
    if as_json:
        print_json(_render(sent, found))
    if found is None:
        if not as_json:
            note(f"sent, and not decided yet: send it again with --key {command_id}, which does not run it twice")
        return
    result = found.result
    if result.status != "accepted":
        said = f"{command} was not accepted ({result.status.replace('_', ' ')}): {result.reason}"
        raise NotAccepted(said, hint=f'"{aggregate_id}" of aggregate "{aggregate}" has version {result.version}')
    if not as_json:
        for event in result.events:
            console().print(f"{event['sequence']} {event['type']} {json.dumps(event['data'])}", markup=False)
        note(f"version {result.version}{', as the first time' if found.repeated else ''}")


def _fields(data: str) -> dict[str, Any]:
    hint = """write the fields as a JSON object: '{"order_id": "ord_1"}'"""
    try:
        fields = json.loads(data)
    except ValueError as error:
        raise BadCommand(f"the data is not JSON: {error}", hint=hint) from error
    if not isinstance(fields, dict):
        raise BadCommand("the data is not a JSON object", hint=hint)
    return fields


def _known(log: Log) -> dict[str, AggregateDescription]:
    from potok.snapshots.patterns.declared_aggregates import aggregates_in

    descriptions = {
        name.split("/")[1]: data for name, data in log.list_metadata("query/").items() if name.endswith("/description")
    }
    return {one.name: one for query, data in sorted(descriptions.items()) for one in aggregates_in(query, data)}


def _check(log: Log, aggregate: str, command: str) -> None:
    known = _known(log)
    if aggregate not in known:
        there = f"there are: {', '.join(sorted(known))}" if known else "no query in this log has one"
        raise QueryError(f'there is no aggregate "{aggregate}"', hint=there)
    commands = known[aggregate].commands
    if command not in commands:
        hint = f"it has: {', '.join(sorted(commands))}"
        raise QueryError(f'aggregate "{aggregate}" has no command "{command}"', hint=hint)


def _render(sent: Sent, found: Found | None) -> dict[str, Any]:
    if found is None:
        return {"status": "sent", "command_id": sent.command_id, "position": str(sent.position)}
    position = str(sent.position | found.position)
    return {**asdict(found.result), "repeated": found.repeated, "position": position}
