"""Ports of this machine."""

from __future__ import annotations

import errno
import socket
from contextlib import ExitStack

from potok.errors import LogError
from potok.log.kafka.development.server_files import HOST
from potok.log.kafka.errors import PortTaken


def check_port(port: int) -> None:
    """Raise if the port cannot be used."""
    with socket.socket() as probe:
        # Connections in TIME_WAIT of a stopped server do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortTaken(port) from error
            raise LogError(f"cannot listen on port {port}: {error.strerror}", hint="use one above 1023") from error


def free_ports(count: int) -> list[int]:
    """Return distinct free ports; another program may still take them meanwhile."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in probes]


def is_listening(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False
