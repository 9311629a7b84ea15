"""`potok run`: run the topology of a program and show its progress."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.log.timestamps import parse_instant
from potok.cli.options import (
    AllowedHost,
    AuditLog,
    Broker,
    Json,
    LogFormat,
    Metrics,
    TlsCert,
    TlsKey,
    broker_given,
    command_app,
    opened_log,
    settings_of,
)
from potok.cli.output import note
from potok.cli.queries.program import Program, load_program
from potok.cli.queries.program_on_disk import ProgramOnDisk
from potok.cli.queries.running import display_of, run_with_display
from potok.cli.queries.serving import served_tables
from potok.server.address import Address
from potok.server.operations.serve_metrics import served_metrics
from potok.server.protection import Protection

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.log.start import Start
    from potok.monitoring.monitor import Monitor
    from potok.runtime.queries.query import Query
    from potok.server.server import Server
    from potok.topology.graph import Topology

app = command_app()

CONSOLE_PORT = 8088
"""The port of `--console` without `--serve`, that of `potok serve`."""


@app.command()
def run(
    context: typer.Context,
    program: Program,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop when all existing records have been processed.")
    ] = False,
    shards: Annotated[int | None, typer.Option(min=1, help="Number of shards of a new query (POTOK_SHARDS).")] = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="URL", help="State URL of a new query: a directory or a server (POTOK_STATE)."),
    ] = None,
    shadow: Annotated[
        bool,
        typer.Option(
            "--shadow",
            help="Build the tables of a changed program next to the served ones; see `potok promote`.",
        ),
    ] = False,
    web_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port for the web pages of an app; default 6066, 0 for any free port."),
    ] = None,
    without_web: Annotated[bool, typer.Option("--without-web", help="Do not serve web pages.")] = False,
    start_at: Annotated[
        str | None,
        typer.Option("--start", help="Where a new query starts: earliest, latest, or an instant such as yesterday."),
    ] = None,
    serve: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Serve the tables over HTTP; 0 for any free port."),
    ] = None,
    console: Annotated[
        bool, typer.Option("--console", help="Serve the web console: at --serve, or else on port 8088 of this machine.")
    ] = False,
    tokens: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Tokens and scopes of --serve: a tokens.toml (POTOK_TOKENS).")
    ] = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    allowed_host: AllowedHost = None,
    audit_log: AuditLog = None,
    metrics: Metrics = None,
    log_format: LogFormat = None,  # noqa: ARG001 - its callback keeps it
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Run a topology until Ctrl-C or SIGTERM, which stop it at the end of a batch. Serves the web pages of an app.

    A query resumes where it stopped. Changes of the program since then are shown first; `potok diff` shows them without
    running anything. With --json, each line is an object whose `event` is changed, progress, stopping or ended.
    """
    found, topology = load_program(program)
    from potok.cli.queries.app_services import AppServices
    from potok.monitoring.monitor import Monitor
    from potok.runtime.monitoring.query_monitor import ProgramMonitor
    from potok.runtime.operations.shadow import shadow_of, start_shadow
    from potok.runtime.queries.prepare import changes_of
    from potok.spark.run import start
    from potok.spark.spark_executor import start_spark

    display, services = display_of(as_json=as_json), AppServices(found)
    address = Address.of(serve or str(CONSOLE_PORT)) if serve is not None or console else None
    protection = Protection(tokens, tls_cert, tls_key, (), tuple(allowed_host or ()), audit_log)
    first = services.start_at if start_at is None else _start_of(start_at)
    broker, state = broker_given(context, broker) or services.broker, state or services.state
    settings = settings_of(context, broker, shards=shards, state=state, kafka=services.kafka)
    with opened_log(context, broker, create=True, state=state, kafka=services.kafka) as log, ExitStack() as serving:
        name = shadow_of(topology).name if shadow else topology.name
        watched = ProgramMonitor(Monitor(), log, settings, name)
        serving.enter_context(served_metrics(watched.monitor, metrics, note))
        server: Server | None = None
        if address is not None and services.app is None:
            server = serving.enter_context(
                served_tables(log, settings, [name], address, protection=protection, monitor=watched.monitor)
            )
            note(f"console: {server.url}/console/   tables of {name}: {server.url}/tables")
        if shadow:
            begin = partial(start_shadow, topology, log, settings, start_spark, until_end=until_end)
            run_with_display(log, name, display, lambda: _controlled(server, watched.started(begin())))
            return
        display.changes(topology.name, changes_of(topology, log))
        _mention_shards(log, topology.name, shards)
        if not until_end:
            _start_captures(topology, log, serving, watched.monitor)
        with services:
            services.serve(
                settings, web_port, without=without_web, address=address, protection=protection, monitor=watched.monitor
            )
            given: dict[str, Any] = {
                "broker": settings.broker,
                "shards": shards,
                "state": state,
                "kafka": services.kafka,
                "log_format": settings.log_format,
            }
            begin = partial(start, topology, until_end=until_end, start=first, **given)
            run_with_display(
                log,
                topology.name,
                display,
                lambda: services.start(
                    _controlled(server, watched.started(begin()), ProgramOnDisk(program, settings.broker)),
                    until_end=until_end,
                ),
            )


def _controlled(server: Server | None, query: Query, program: ProgramOnDisk | None = None) -> Query:
    """Let the clients of a server pause and resume a query, and compare it with its program."""
    if server is not None:
        server.control(query.name, query)
        if program is not None:
            server.compare(query.name, program.differences)
    return query


def _start_captures(topology: Topology, log: Log, running: ExitStack, monitor: Monitor) -> None:
    """Run the captures of a program next to its query."""
    if topology.captures:
        from potok.sources.cdc.monitoring import monitor_captures
        from potok.sources.cdc.runner import captured

        runners = running.enter_context(captured(topology, log))
        monitor_captures(monitor, lambda: runners)
        for runner in runners:
            note(f"capturing {', '.join(runner.capture.tables)} into topics {runner.capture.name}.*")


def _start_of(text: str) -> Start:
    if text in ("earliest", "latest"):
        return "earliest" if text == "earliest" else "latest"
    return datetime.fromtimestamp(parse_instant(text) / 1000, UTC)


def _mention_shards(log: Log, query: str, wanted: int | None) -> None:
    from potok.snapshots.ledger_view import read_entry

    entry = read_entry(log, query)
    if entry is not None and wanted not in (None, entry.shards):
        cut = f'the state of query "{query}" has {entry.shards} shards since it was created'
        note(f"{cut}; --shards is ignored; to change it: potok state reshard PROGRAM --shards {wanted}")
