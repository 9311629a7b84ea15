"""The command group: the table of commands, global options, and error reporting."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from potok.cli.options import Broker, Globals
from potok.errors import PotokError, QueryError, SetupError
from potok.machine import MachineError, is_of_machine
from potok.runtime.batches.failure_cause import INTERNAL, code_location, is_internal
from potok.version import __version__

COMMANDS = {
    "run": ("potok.cli.queries.run", "Run a program until it is stopped, and show its progress."),
    "sql": ("potok.cli.sql", "Execute SQL: at a prompt, from a file, or on a server."),
    "serve": ("potok.cli.serve", "Run SQL queries, and serve tables and streams over HTTP."),
    "tokens": ("potok.cli.tokens", "Add, list and remove tokens of the HTTP server; only digests are stored."),
    "gateway": ("potok.cli.gateway", "Receive webhooks, datagrams, lines and files into topics."),
    "cdc": ("potok.cli.cdc", "Capture the changes of database tables into topics."),
    "topics": ("potok.cli.log.topics", "List, create, describe and delete topics."),
    "produce": ("potok.cli.log.produce", "Append lines to a topic."),
    "command": ("potok.cli.log.command", "Send commands to aggregates and list what they accept."),
    "consume": ("potok.cli.log.consume", "Print the records of a topic."),
    "events": ("potok.cli.log.events", "List the types and versions of the events in a topic, and invalid records."),
    "groups": ("potok.cli.log.groups", "List consumer groups and queues, show their lag, and reset them."),
    "tables": ("potok.cli.state.tables", "List and read the tables of queries."),
    "forget": (
        "potok.cli.state.forget",
        "Delete the key of a person's data, and append SubjectForgotten to the topics with their events.",
    ),
    "sagas": ("potok.cli.state.sagas", "List the instances of sagas, and retry, skip or abort them."),
    "dead-letters": ("potok.cli.state.dead_letters", "List, show, replay and purge the dead letters of a query."),
    "webhooks": ("potok.cli.state.webhooks", "List the deliveries of webhooks, and send them again."),
    "offsets": ("potok.cli.state.offsets", "Show and reset the offsets of a query."),
    "replay": ("potok.cli.queries.replay", "Run a program over old records, into other topics and tables."),
    "state": ("potok.cli.state.state", "Show, back up, verify and reshard the state of queries."),
    "checkpoints": ("potok.cli.state.checkpoints", "Show where queries would resume."),
    "rebuild": ("potok.cli.queries.rebuild", "Rebuild the tables of a changed program and replace the served ones."),
    "promote": ("potok.cli.queries.promote", "Replace the served tables with those that a shadow has built."),
    "describe": ("potok.cli.queries.describe", "Show the steps of a program or of a query."),
    "top": ("potok.cli.top", "Watch all queries of a log in the terminal, the worst first."),
    "explain": ("potok.cli.queries.explain", "Show how each step of a program runs, and why."),
    "diff": (
        "potok.cli.queries.diff",
        "Show what changed in a program since its last run, and whether its state is compatible.",
    ),
    "demo": ("potok.cli.demo", "Run the demo: process a live stream of orders and open its web page."),
    "kafka": ("potok.cli.log.kafka", "Start and stop a single-node Kafka on this machine, for development."),
    "settings": ("potok.cli.settings", "Show every setting with its value and its origin."),
    "doctor": (
        "potok.cli.checks.doctor",
        "Check that this machine can run Potok, and show how to fix what is missing.",
    ),
}
"""Name, module and help text. The module has an `app` created by `command_app()` and is imported when called."""


class Commands(TyperGroup):
    """Command group that imports the module of a command only when it is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, (_, text) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=text, short_help=text), name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, _load(str(name)), rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PotokError as error:
            from potok.cli.output import print_error

            print_error(error)
            raise typer.Exit(error.exit_code) from error
        except ModuleNotFoundError as error:
            from potok.cli.missing_package import missing_package
            from potok.cli.output import print_error

            missing = missing_package(error)
            if missing is None:
                raise
            print_error(missing)
            raise typer.Exit(missing.exit_code) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(130) from error
        except BrokenPipeError as error:
            # The reader closed the pipe; keep the interpreter from flushing to it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("typer", "click"):
                raise  # usage errors and exits
            from potok.cli.output import print_error

            reported = unexpected(error)
            if reported is None:
                raise
            print_error(reported)
            raise typer.Exit(reported.exit_code) from error


app = typer.Typer(
    cls=Commands, name="potok", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"potok {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
]


@app.callback()
def options(context: typer.Context, broker: Broker = None, version: Version = False) -> None:  # noqa: ARG001
    """Kafka Streams, ksqlDB and Faust in one Python package, executed by Spark."""
    context.obj = Globals(broker=broker)


def main() -> None:
    app()


def _load(name: str) -> Any:
    module = importlib.import_module(COMMANDS[name][0])
    command = typer.main.get_command(module.app)
    command.name = name
    return command


class InternalError(QueryError):
    """An unexpected exception inside Potok."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"{INTERNAL} ({code_location(error)}): {type(error).__name__}: {error}"[:500],
            hint="this is a bug in Potok: report this message with the command",
        )


class NotText(SetupError):
    """A command-line argument is not UTF-8."""

    def __init__(self, error: UnicodeEncodeError) -> None:
        super().__init__(
            f"{error.object!r} is not text: it has bytes that are not UTF-8"[:500], hint="type it in UTF-8 (locale -a)"
        )


def unexpected(error: Exception) -> PotokError | None:
    """Return the error to print for an unexpected exception; None if the user's program raised it."""
    if not is_internal(error):
        return None
    if isinstance(error, OSError | MemoryError) and is_of_machine(error):
        return MachineError("the command was running", error)
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):
        return MachineError("the command was running", OSError(errno.ELOOP, str(error)))
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return NotText(error)
    return InternalError(error)
