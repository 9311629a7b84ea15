"""The option `--metrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from potok.extras import need_extra
from potok.monitoring.monitor import Monitor
from potok.server.address import Address


@contextmanager
def served_metrics(monitor: Monitor, address: str | None, say: Callable[[str], None]) -> Iterator[None]:
    """Serve metrics and health on a port, if an address is given."""
    if address is None:
        yield
        return
    need_extra("--metrics", "server")
    from potok.server.operations.operations_server import OperationsServer

    with OperationsServer(monitor, *Address.of(address)) as server:
        say(f"metrics: {server.url}/metrics")
        yield
