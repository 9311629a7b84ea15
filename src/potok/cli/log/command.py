"""`potok command`: send commands to aggregates, and show their results."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import note, print_json
from potok.errors import PotokError

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.patterns.aggregates.messages import Result

app = command_app(no_args_is_help=True, help="Send commands to aggregates.")


class BadCommand(PotokError):
    """A command that cannot be sent."""


class NoResult(PotokError):
    """A command whose result did not arrive in time."""


@app.callback()
def command() -> None:
    """Send commands to aggregates."""


@app.command()
def send(
    context: typer.Context,
    aggregate: Annotated[str, typer.Argument(help="The aggregate, as in @potok.aggregate.", show_default=False)],
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id of the aggregate.", show_default=False)],
    name: Annotated[str, typer.Argument(metavar="COMMAND", help="The command.", show_default=False)],
    data: Annotated[str, typer.Argument(help="The fields of the command, as JSON.")] = "{}",
    command_id: Annotated[
        str | None, typer.Option(help="The id of the command; one that was sent before returns its first result.")
    ] = None,
    expect: Annotated[
        str, typer.Option(metavar="VERSION", help="The expected version: any, none, exists, or a number.")
    ] = "any",
    correlation: Annotated[str | None, typer.Option(help="The correlation id of the events.")] = None,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for the result; 0: do not.")
    ] = 10.0,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Send a command to an aggregate, and show its result. The exit code is 1 if it was not accepted."""
    from potok.patterns.aggregates.messages import command_record, commands_topic, expectation, results_topic

    fields = _fields(data)
    try:
        expectation(expect)
    except ValueError as error:
        raise BadCommand(str(error), hint="for example --expect 3") from error
    chosen = command_id or str(uuid.uuid4())
    with opened_log(context, broker) as log:
        for topic in (commands_topic(aggregate), results_topic(aggregate)):
            if not log.has_topic(topic):
                hint = "start its program first, or check the name: potok topics list"
                raise BadCommand(f'there is no aggregate "{aggregate}": topic "{topic}" does not exist', hint=hint)
        before = log.end_offsets_of([results_topic(aggregate)])[results_topic(aggregate)]
        record = command_record(id_, name, fields, command_id=chosen, expected_version=expect, correlation=correlation)
        log.append(commands_topic(aggregate), [record])
        if not wait:
            _sent(chosen, as_json=as_json)
            return
        result = _result(log, results_topic(aggregate), before, chosen, wait)
    if result is None:
        hint = f"is its program running? Ask again later, with --command-id {chosen}: it will not be decided twice"
        raise NoResult(f"no result within {wait:g} s; the command is sent", hint=hint)
    if as_json:
        print_json(asdict(result))
    else:
        _show(result)
    if result.status != "accepted":
        raise typer.Exit(1)


def _fields(data: str) -> dict[str, Any]:
    hint = """for example '{"order_id": "ord_1"}'"""
    try:
        found = json.loads(data)
    except ValueError as error:
        raise BadCommand(f"the fields of a command are a JSON object: {error}", hint=hint) from error
    if not isinstance(found, dict):
        raise BadCommand("the fields of a command are a JSON object", hint=hint)
    return found


def _result(log: Log, topic: str, seen: dict[int, int], command_id: str, seconds: float) -> Result | None:
    """Follow the results until that of a command, for so many seconds."""
    from potok.patterns.aggregates.messages import read_result

    deadline = time.monotonic() + seconds
    while True:
        for partition, end in log.end_offsets_of([topic])[topic].items():
            for batch in log.read(topic, partition, seen.get(partition, 0), end):
                for value in batch.column("value").to_pylist():
                    found = read_result(value)
                    if found.command_id == command_id:
                        return found
            seen[partition] = end
        if time.monotonic() > deadline:
            return None
        time.sleep(log.poll_interval_s)


def _sent(command_id: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"command_id": command_id})
    else:
        note(f"sent as {command_id}")


def _show(result: Result) -> None:
    why = f": {result.reason}" if result.reason else ""
    note(f"{result.command} was {result.status.replace('_', ' ')}{why}; version {result.version}")
    for event in result.events:
        typer.echo(json.dumps(event, ensure_ascii=False))
