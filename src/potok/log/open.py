"""From a URL to a broker."""

from __future__ import annotations

from pathlib import Path

from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import BrokerNotSupported


def open_broker(url: str | Path) -> Broker:
    """The broker at a URL: `file:./data`, or a plain path. The same one each time within a process.

    >>> broker = open_broker("file:./data")
    """
    return EmbeddedBroker.shared(_directory(url))


def _directory(url: str | Path) -> Path:
    if isinstance(url, Path):
        return url.resolve()
    scheme, colon, rest = url.partition(":")
    if not colon or "/" in scheme:
        return Path(url).resolve()
    if scheme == "file" and rest:
        return Path("/" + rest.lstrip("/") if rest.startswith("///") else rest).expanduser().resolve()
    hint = 'use a directory, for example "file:./data"'
    if scheme == "kafka":
        hint = f"Kafka is not supported yet; {hint}"
    raise BrokerNotSupported(url, hint)
