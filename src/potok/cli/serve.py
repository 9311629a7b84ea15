"""`potok serve`: run SQL queries and serve their tables and streams over HTTP."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from potok.cli.catalog_captures import CatalogCaptures
from potok.cli.options import (
    AllowedHost,
    AuditLog,
    Broker,
    Functions,
    Json,
    LogFormat,
    TlsCert,
    TlsKey,
    command_app,
    opened_log,
    settings_of,
)
from potok.cli.output import counted, note, print_json
from potok.cli.queries.running import Interruption
from potok.cli.queries.serving import served_tables
from potok.duration import show_ms
from potok.extras import need_extra
from potok.server.address import Address
from potok.server.protection import Protection

if TYPE_CHECKING:
    from potok.server.access.limits import Limits
    from potok.server.server import Server
    from potok.statements.database import Database

app = command_app()

LOOK_S = 0.25


@app.command()
def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option(help="Address to listen on; clients on other machines need tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free port.")] = 8088,
    tokens: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Tokens and their scopes: a tokens.toml (or POTOK_TOKENS).")
    ] = None,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Statements to execute first if nothing is defined yet.")
    ] = None,
    cors: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="Origin whose web pages may call this server.")
    ] = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    allowed_host: AllowedHost = None,
    audit_log: AuditLog = None,
    max_requests: Annotated[
        float | None, typer.Option(min=0.01, help="Maximum requests per second of a token; none by default.")
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Maximum rows of a finite response.")] = 100_000,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="Maximum seconds for a finite response.")] = 60.0,
    max_push_queries: Annotated[int, typer.Option(min=0, help="Maximum open push queries.")] = 500,
    max_body: Annotated[int, typer.Option(min=1024, help="Maximum bytes of a request.")] = 16 << 20,
    max_answer: Annotated[int, typer.Option(min=1 << 16, help="Maximum bytes of a finite response.")] = 128 << 20,
    max_unsent: Annotated[
        int, typer.Option(min=1 << 16, help="Maximum bytes of responses not yet received by clients.")
    ] = 512 << 20,
    query: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Serve only the tables of this query of a program; another process runs it."),
    ] = None,
    state: Annotated[str | None, typer.Option(metavar="URL", help="State URL of new queries (POTOK_STATE).")] = None,
    functions: Functions = None,
    log_format: LogFormat = None,  # noqa: ARG001 - its callback keeps it
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Run the queries of a log and serve its tables and streams over HTTP until Ctrl-C or SIGTERM.

    Existing definitions are restored. Clients of ksqlDB and `potok sql --server` can connect.
    With --query, the tables of a program that `potok run` runs are served in the same way; no queries are run.
    With --json, each line is an object whose `event` is serving, running or stopped.
    """
    need_extra("potok serve", "server")
    from potok.cli.queries.program import load_functions
    from potok.log.open import open_broker
    from potok.redact import redact_url
    from potok.server.access.limits import Limits
    from potok.server.server import Server
    from potok.sources.cdc.monitoring import monitor_captures
    from potok.sources.monitoring import monitor_listeners
    from potok.sources.sql_connectors import SqlConnectors
    from potok.statements.catalog.remote_queries import queries_are_running
    from potok.statements.database import Database
    from potok.statements.errors import ServedElsewhere
    from potok.statements.queries.readings import database_monitor

    settings = settings_of(context, broker, state=state)
    limits = Limits(
        body_bytes=max_body,
        rows=max_rows,
        answer_bytes=max_answer,
        unsent_bytes=max_unsent,
        seconds=max_seconds,
        push_queries=max_push_queries,
        requests_per_second=max_requests,
    )
    protection = Protection(tokens, tls_cert, tls_key, tuple(cors or ()), tuple(allowed_host or ()), audit_log)
    if query:
        _serve_queries(context, broker, query, Address(host, port), protection, limits, state, as_json=as_json)
        return
    protected = protection.load()
    load_functions(functions or ())
    with Interruption() as interruption, contextlib.ExitStack() as stack:
        log = open_broker(settings.broker, settings)
        stack.callback(log.close)
        if queries_are_running(log):
            raise ServedElsewhere(redact_url(settings.broker))
        connectors = SqlConnectors(log)
        database = stack.enter_context(Database(log, settings, connectors=connectors))
        captures, monitor = CatalogCaptures(database), database_monitor(database)
        monitor_listeners(monitor, connectors.statuses)
        monitor_captures(monitor, lambda: captures.runners)
        server = Server(database, host, port, limits=limits, monitor=monitor, **protected)
        stack.callback(server.stop)
        if script is not None:
            _begin(database, script)
        server.start()
        interruption.wait_for_the_batch()
        _report(server, database, as_json=as_json)
        stack.enter_context(captures)
        _run(server, database, captures, interruption, as_json=as_json)
        if not as_json:
            within = interruption.deadline.timeout_ms
            reason = f"{interruption.signal}: " if interruption.signal else ""
            note(f"{reason}stopping at the end of a batch{f', within {show_ms(within)}' if within else ''}")
    if as_json:
        print_json({"event": "stopped", "url": server.url})
    else:
        note("stopped")


def _serve_queries(
    context: typer.Context,
    broker: str | None,
    queries: list[str],
    address: Address,
    protection: Protection,
    limits: Limits,
    state: str | None,
    *,
    as_json: bool,
) -> None:
    """Serve tables of queries that other processes run, until Ctrl-C or SIGTERM."""
    from potok.cli.state.tables import chosen_query

    settings = settings_of(context, broker, state=state)
    with Interruption() as interruption, opened_log(context, broker, state=state) as log:
        names = [chosen_query(log, name) for name in queries]
        with served_tables(log, settings, names, address, protection=protection, limits=limits) as server:
            interruption.wait_for_the_batch()
            if as_json:
                print_json({"event": "serving", "url": server.url, "queries": names})
                print(end="", flush=True)
            else:
                note(f"serving tables of {', '.join(names)}: {server.url}/tables; console: {server.url}/console/")
            while not interruption.asked.wait(LOOK_S) and not server.wait(0):
                pass
    if as_json:
        print_json({"event": "stopped", "url": server.url})
    else:
        note("stopped")


def _begin(database: Database, script: Path) -> None:
    """Execute the initial statements of an empty catalog. If one fails, those before it stay, as at a prompt."""
    from potok.cli.prompt.display import Drawn
    from potok.cli.prompt.script import Script, check_ends, read_text
    from potok.cli.prompt.targets.local import Here

    if database.catalog.sources or database.catalog.types or database.catalog_state().queries:
        note(f"{script} is not executed: the catalog is not empty")
        return
    text = read_text(script)
    check_ends(text, str(script))
    Script(Here(database), Drawn(), settles=False).run(text, str(script))


def _report(server: Server, database: Database, *, as_json: bool) -> None:
    from potok.redact import redact_url

    broker, sources, queries = (
        redact_url(database.settings.broker),
        database.catalog.sources,
        database.catalog_state().queries,
    )
    if as_json:
        print_json({"event": "serving", "url": server.url, "broker": broker, "queries": len(queries)})
        print(end="", flush=True)
        return
    streams = counted(len(sources), "stream or table", "streams and tables")
    note(f"serving {broker} on {server.url}: {streams}, {counted(len(queries), 'query', 'queries')}")
    note(f"  {server.url}/console/")
    note(f"  potok sql --server {server.url}")
    note(f"  {server.url}/tables/NAME/KEY and the rest of the API: {server.url}/openapi.json")
    note("Ctrl-C stops at the end of a batch")


def _run(
    server: Server, database: Database, captures: CatalogCaptures, interruption: Interruption, *, as_json: bool
) -> None:
    """Run until interrupted, serving tables while Spark starts. Raises if queries cannot run or stop running."""
    from potok.cli.prompt.targets.target import in_background
    from potok.records.garbage_collection import spare_imports

    starting: Future[None] | None = in_background(database.start)
    while not interruption.asked.wait(LOOK_S) and not server.wait(0):
        database.check()
        captures.follow()
        if starting is not None and starting.done():
            starting.result()
            starting = None
            spare_imports()
            if as_json:
                print_json({"event": "running", "url": server.url})
                print(end="", flush=True)
            else:
                note("queries are running")
    if starting is not None:
        # Spark cannot be stopped before it has started.
        ended = threading.Event()
        starting.add_done_callback(lambda _: ended.set())
        ended.wait()
