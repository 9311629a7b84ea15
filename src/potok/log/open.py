"""Open the broker at a URL."""

from __future__ import annotations

from pathlib import Path

from potok.errors import LogError
from potok.extras import need_extra
from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import BrokerNotSupported
from potok.machine import naming_machine
from potok.redact import redact_url
from potok.settings import Settings


class NoLogThere(LogError):
    """A directory without a log."""

    def __init__(self, url: str | Path) -> None:
        super().__init__(
            f"no log in {_directory(url)}",
            hint="potok run PROGRAM and potok produce TOPIC create one; or name another with --broker or POTOK_BROKER",
        )


def log_exists(url: str | Path) -> bool:
    """Return whether there is a log to read, without creating one; a server is only contacted when it is opened."""
    if "://" in str(url) and not str(url).startswith("file:"):
        return True
    directory = _directory(url)
    with naming_machine(f"looking for a log in {directory}"):
        return (directory / "log" / "meta").exists()


def open_broker(url: str | Path, settings: Settings | None = None, *, shared: bool = True) -> Broker:
    """Open the broker at a URL: `file:./data`, a plain path, or `kafka://host:9092`.

    A process shares one broker per URL, unless `shared` is false: then the caller closes it.

    Kafka stores no metadata, so the ledgers of queries are stored with their state: in the directory `./data`, where
    the setting `state` says, or where the URL says: `kafka://host:9092?home=redis://host:6379/0`.

    >>> broker = open_broker("file:./data")
    """
    if isinstance(url, str) and url.partition(":")[0] == "kafka":
        need_extra("Kafka", "kafka")
        from potok.log.kafka.kafka_broker import KafkaBroker

        return KafkaBroker.at(url, settings, shared=shared)
    directory = _directory(url)
    with naming_machine(f"opening the log in {directory}"):
        return EmbeddedBroker.shared(directory) if shared else EmbeddedBroker(directory)


def _directory(url: str | Path) -> Path:
    if isinstance(url, Path):
        return _resolved(url)
    scheme, colon, rest = url.partition(":")
    if not colon or "/" in scheme:
        return _resolved(Path(url))
    if scheme == "file" and rest:
        return _resolved(Path("/" + rest.lstrip("/") if rest.startswith("///") else rest), home=True)
    raise BrokerNotSupported(redact_url(url), 'use a directory, for example "file:./data", or "kafka://localhost:9092"')


def _resolved(path: Path, *, home: bool = False) -> Path:
    try:
        return (path.expanduser() if home else path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise BrokerNotSupported(str(path), f"the path cannot be used: {error}") from error
