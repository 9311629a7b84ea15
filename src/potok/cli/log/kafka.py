"""`potok kafka`: start and stop a single-node Kafka for development."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from potok.cli.options import Json, command_app, settings_of
from potok.cli.output import console, note, print_json
from potok.extras import need_extra

if TYPE_CHECKING:
    from potok.log.kafka.development.server import KafkaServer, ServerStatus

app = command_app(no_args_is_help=True, help="Start and stop a single-node Kafka on this machine, for development.")

Directory = Annotated[Path, typer.Option(help="Directory of its records, settings and log file.")]
DEFAULT_DIRECTORY = Path("data/kafka")


@app.command()
def up(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free port.")] = 9092,
    directory: Directory = DEFAULT_DIRECTORY,
    as_json: Json = False,
) -> None:
    """Start Kafka and wait until it is ready. Does nothing if it runs already, and waits if it is starting.

    The first time, its jars (46 MB) are downloaded from Maven Central. It listens on this machine only and runs until
    `potok kafka down`.
    """
    server = _server(context, directory)
    with _progress() as progress:
        status = server.start(port, progress=progress)
    if as_json:
        print_json(_summary(status, server))
        return
    if port not in (0, status.port):
        note(f"Kafka runs already, on port {status.port}; stop it first: potok kafka down")
    note(f"Kafka {status.version} is up at {status.url} (process {status.pid}, log {_short_path(server.files.log)})")
    note(f"use it: export POTOK_BROKER={status.url}")


@app.command()
def down(context: typer.Context, directory: Directory = DEFAULT_DIRECTORY, as_json: Json = False) -> None:
    """Stop the Kafka that `potok kafka up` started; its records are kept."""
    server = _server(context, directory)
    was_up = server.stop()
    if as_json:
        print_json(_summary(server.status(), server) | {"was_up": was_up})
    else:
        note(f"Kafka in {_short_path(directory)} {'is stopped' if was_up else 'was not running'}")


@app.command()
def status(context: typer.Context, directory: Directory = DEFAULT_DIRECTORY, as_json: Json = False) -> None:
    """Show whether Kafka runs, and where. Exits with 1 if it does not run or is not ready."""
    server = _server(context, directory)
    found = server.status()
    ready = server.accepts_connections()
    if as_json:
        print_json(_summary(found, server, ready=ready))
    elif found.is_up and not ready:
        process = f"process {found.pid}, log {_short_path(server.files.log)}"
        typer.echo(f"starting at {found.url} ({process}); potok kafka up waits for it, potok kafka down stops it")
    elif found.is_up:
        typer.echo(
            f"up at {found.url} (Kafka {found.version}, process {found.pid}, log {_short_path(server.files.log)})"
        )
    else:
        typer.echo(f"no Kafka runs in {_short_path(directory)}; start it: potok kafka up")
    if not ready:
        raise typer.Exit(1)


def _server(context: typer.Context, directory: Path) -> KafkaServer:
    need_extra("a Kafka for development", "kafka")
    from potok.log.kafka.development.server import KafkaServer

    return KafkaServer(directory, settings_of(context).cache_path)


def _summary(found: ServerStatus, server: KafkaServer, *, ready: bool = True) -> dict[str, object]:
    return {
        "state": ("up" if ready else "starting") if found.is_up else "down",
        "url": found.url,
        "bootstrap": found.bootstrap,
        "port": found.port,
        "pid": found.pid,
        "version": found.version,
        "directory": str(found.directory),
        "log": str(server.files.log),
    }


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show progress: on a terminal as one line that changes, otherwise as every tenth of similar lines."""
    if sys.stderr.isatty():
        with console(stderr=True).status("") as line:
            yield line.update
        return
    seen: dict[str, int] = {}

    def report(line: str) -> None:
        kind = line.partition(":")[0]
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] % 10 == 1:
            note(line)

    yield report


def _short_path(path: Path) -> str:
    """Render a path, relative if it is below the working directory."""
    with contextlib.suppress(ValueError):
        return str(path.resolve().relative_to(Path.cwd()))
    return str(path)
