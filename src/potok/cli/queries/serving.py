"""Serve the tables of programs over HTTP: `potok run --serve` and `potok serve --query`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from potok.errors import SetupError
from potok.extras import need_extra

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log
    from potok.server.access.limits import Limits
    from potok.server.server import Server
    from potok.settings import Settings

DEFAULT_HOST = "127.0.0.1"


class NotAnAddress(SetupError):
    """The text is not an address to listen on."""

    def __init__(self, text: str) -> None:
        super().__init__(f'"{text}" is not an address to listen on', hint="write PORT or HOST:PORT, for example 8088")


class Address(NamedTuple):
    """The address to listen on."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Address:
        """`8088`, `0.0.0.0:8088` or `[::1]:8088`."""
        host, colon, port = text.rpartition(":")
        if not port.isdecimal() or int(port) > 65535 or (colon and not host):
            raise NotAnAddress(text)
        return cls(host.removeprefix("[").removesuffix("]") or DEFAULT_HOST, int(port))


@contextmanager
def served_tables(
    log: Log,
    settings: Settings,
    queries: Sequence[str],
    address: Address,
    *,
    tokens: Path | None = None,
    limits: Limits | None = None,
    origins: Collection[str] = (),
) -> Iterator[Server]:
    """Serve the tables of queries that this or another process runs; a query that has not started has no tables yet."""
    need_extra("serving tables", "server")
    from potok.server.access.tokens import Tokens
    from potok.server.server import Server
    from potok.statements.query_tables import QueryTables

    with (
        QueryTables(log, settings, queries) as database,
        Server(database, *address, tokens=Tokens.load(tokens), limits=limits, origins=origins) as server,
    ):
        yield server
