"""The web application: ksqlDB's API and Potok's own, behind one guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from potok.errors import PotokError
from potok.machine import MachineError, is_of_machine
from potok.monitoring.monitor import Monitor
from potok.server.access.audit import Audit
from potok.server.access.guard import Guard, caller_of, may_read
from potok.server.access.limits import Limits
from potok.server.access.tokens import READ, Tokens
from potok.server.api import changes, events, records, sagas, tables
from potok.server.api import queries as api_queries
from potok.server.commands import routes as commands
from potok.server.commands.openapi import describe_commands
from potok.server.console.pages import console_routes, start_page
from potok.server.context import Site
from potok.server.errors import BadRequest, InternalError, NotThere, ServingError
from potok.server.inspection import cluster, dead_letters, overview, patterns, rows, sources, topics
from potok.server.inspection import queries as inspection_queries
from potok.server.ksql import inserts, statements
from potok.server.ksql import queries as ksql_queries
from potok.server.operations.routes import Operations
from potok.server.pages import Files, Page, PageRoute, file_routes
from potok.server.problems import OTHERS, refusal_of
from potok.server.tables.fast_path import QuickRows, leave_tables_alone
from potok.statements.database import Database
from potok.version import __version__

ABOUT = """
Tables, streams and queries of one database. Errors are `application/problem+json`, with a `hint`.
The REST API of ksqlDB is served as well: `/ksql`, `/query`, `/query-stream`, `/inserts-stream`,
`/close-query`, `/info`, `/healthcheck`, `/status`, `/clusterStatus`, `/ws/query`.
`/metrics`, `/livez` and `/readyz` are for monitoring.
"""

INSPECTION = (overview, inspection_queries, topics, dead_letters, rows, patterns, sources, cluster)
"""What operators see and do; the console calls nothing else."""


def create_app(
    database: Database,
    *,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    origins: Collection[str] = (),
    pages: Sequence[Page] = (),
    files: Sequence[Files] = (),
    monitor: Monitor | None = None,
    console: bool = True,
    hosts: Collection[str] = (),
    audit: Audit | None = None,
) -> FastAPI:
    """Create the application over a database, which stays open when the application ends.

    Args:
        tokens: Tokens and their scopes; without any, clients on this machine may do everything.
        origins: Sites whose pages may call this server from a browser.
        pages: Pages of a program, matched before all other paths.
        files: Files of a program, matched last.
        monitor: What the process measures; otherwise, the queries of the database are monitored.
        console: Serve the web console at `/console/`, and at `/` if the program has nothing there.
        hosts: The names by which clients call this server; without any, all if there are tokens.
        audit: Where changes are logged.
    """
    limits = limits or Limits()
    site = Site(database, limits, audit)
    operations = Operations(site.monitored_by(monitor), _may_read_metrics, lambda request: may_read(request.scope))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        operations.close()
        site.close()

    app = FastAPI(
        title="Potok",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=OTHERS,
    )
    app.state.site = site
    app.router.routes[:0] = [*map(PageRoute, pages), tables.QUICK]
    for routes in (operations.routes, commands.ROUTES, statements.ROUTES, ksql_queries.ROUTES, inserts.ROUTES):
        app.router.routes.extend(routes)
    for api in (*INSPECTION, changes, tables, records, events, sagas, api_queries):
        app.include_router(api.router)
    describe_commands(app, site.aggregates)
    if console:
        app.router.routes.extend(console_routes())
    app.router.routes.extend(file_routes(files))
    starts_here = console and "/" not in {*(page.path for page in pages), *(item.prefix or "/" for item in files)}
    if starts_here:
        app.router.routes.append(start_page())
    if leave_tables_alone(page.path for page in pages):
        app.add_middleware(QuickRows, reads=site.reads)
    app.add_middleware(
        Guard,
        tokens=tokens or Tokens({}),
        limits=limits,
        bodies=site.bodies,
        unsent=site.unsent,
        origins=origins,
        opened={"/"} if starts_here else (),
        hosts=hosts,
        audit=site.audit,
    )
    app.add_exception_handler(PotokError, _potok_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _bad_parameter)
    app.add_exception_handler(Exception, _unexpected)
    return app


def _may_read_metrics(request: Request) -> bool:
    caller_of(request.scope).require(READ)
    return True


async def _potok_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, PotokError)
    return refusal_of(error, request.scope)


async def _unexpected(request: Request, error: Exception) -> Response:
    """Respond with a problem; log the details."""
    if isinstance(error, OSError | MemoryError) and is_of_machine(error):
        return await _potok_error(request, MachineError("the request was answered", error))
    return await _potok_error(request, InternalError(type(error).__name__))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        nothing = NotThere(f"there is nothing at {request.url.path}", hint="GET /openapi.json")
        return await _potok_error(request, nothing)
    other = ServingError(str(error.detail), hint="GET /openapi.json describes the API")
    other.status = error.status_code
    return await _potok_error(request, other)


async def _bad_parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return await _potok_error(request, BadRequest(f"{where}: {first['msg']}", hint="GET /openapi.json"))
