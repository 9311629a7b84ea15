"""Check that a topology with personal fields has a key store apart from its log."""

from __future__ import annotations

from pathlib import Path

from potok.errors import SetupError
from potok.events.personal.key_store import open_key_store
from potok.extras import need_extra
from potok.log.broker import Broker
from potok.topology.graph import Topology
from potok.topology.nodes import Sink, StreamSource

_HINT = 'write a directory separate from the log and its backups: personal_keys = "file:/secure/potok-keys"'


def checked_key_store(topology: Topology, broker: Broker, url: str) -> str:
    """Return the location of the key store; raise if there must be one and it cannot be used."""
    if not url and not _has_personal_fields(topology):
        return ""
    if _has_personal_fields(topology):
        need_extra("personal fields", "personal")
        if not url:
            raise SetupError("events with personal fields need the setting personal_keys", hint=_HINT)
        open_key_store(url).keys([b""])
    _check_apart(open_key_store(url).path, broker)
    return url


def _has_personal_fields(topology: Topology) -> bool:
    read = [source.events.types for source in topology.of_type(StreamSource) if source.events is not None]
    written = [sink.events.types for sink in topology.of_type(Sink) if sink.events is not None]
    sealed = any(sink.seals for sink in topology.of_type(Sink))
    return sealed or any(type_.personal for types in (*read, *written) for type_ in types)


def _check_apart(path: Path, broker: Broker) -> None:
    log = broker.directory.absolute()
    if path == log or log in path.parents:
        raise SetupError(f'the key store "{path}" is inside the directory of the log', hint=_HINT)
