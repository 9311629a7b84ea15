"""Addresses to listen on, as the command line has them."""

from __future__ import annotations

from typing import NamedTuple

from potok.errors import SetupError

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
