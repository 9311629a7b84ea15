"""Connectors that SQL statements define: each is a gateway with one listener.

CREATE SOURCE CONNECTOR sensors WITH ('type'='mqtt', 'url'='mqtt://localhost', 'subscribe'='sensors/#',
    'client_id'='potok', 'topic'='sensors', 'overload.when_full'='drop_oldest');
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_origin, get_type_hints

from potok.errors import PotokError, TopologyError
from potok.log.broker import Broker
from potok.redact import MASK, redact
from potok.sources.config import KINDS, listener_of
from potok.sources.gateway import Gateway, ListenerStatus, check_listeners
from potok.sources.listener import ListenerSpec
from potok.sources.polling.growing_files import GrowingFiles
from potok.sql.catalog import Connector
from potok.sql.errors import Refused
from potok.statements.connectors import ConnectorInfo, Connectors
from potok.statements.queries.runner import BackOff

STOP_S = 5.0
SECRET_PREFIX = "POTOK_CONNECTOR_"
"""Only environment variables with this prefix are read for a client."""

_CLASS = "connector.class"

_logger = logging.getLogger("potok.sources")


class _Entry:
    """A connector that should run: its gateway, or why it has none."""

    def __init__(self, connector: Connector) -> None:
        self.connector = connector
        self.gateway: Gateway | None = None
        self.error = ""
        self.retry: BackOff | None = None


class SqlConnectors(Connectors):
    """The connectors of one log. Its owner holds a lock around every call but `describe`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._entries: dict[str, _Entry] = {}

    def check(self, connector: Connector) -> None:
        try:
            check_listeners([spec_of(connector)])
        except PotokError as error:
            raise Refused(error.message, hint=error.hint) from error

    def describe(self, connector: Connector) -> ConnectorInfo:
        kind = _kind_of(connector)
        entry = self._entries.get(connector.name)
        try:
            topics: tuple[str, ...] = (spec_of(connector).topic,)
        except PotokError:
            topics = ()
        info = ConnectorInfo(connector.name, kind, _render(kind, connector.options), topics)
        if entry is None:
            return info
        if entry.gateway is None:
            return ConnectorInfo(info.name, kind, info.config, topics, "FAILED", redact(entry.error))
        [status] = entry.gateway.status()
        counts = status.counts
        rendered = {
            "received": counts.received,
            "landed": counts.landed,
            "duplicates": counts.duplicates,
            "buffered": counts.buffered,
            "lost": sum(counts.lost.values()),
            "refused": sum(counts.refused.values()),
        }
        if status.address is not None:
            rendered = {"address": status.address, **rendered}  # type: ignore[dict-item]
        return ConnectorInfo(info.name, kind, info.config, topics, "RUNNING", redact(status.problem or ""), rendered)

    def statuses(self) -> list[ListenerStatus]:
        """Return the status of each connector that runs; the name is that of the connector."""
        running = [entry.gateway for entry in list(self._entries.values()) if entry.gateway is not None]
        return [status for gateway in running for status in gateway.status()]

    def settle(self, wanted: Mapping[str, Connector]) -> None:
        for name in [name for name, entry in self._entries.items() if wanted.get(name) is not entry.connector]:
            _stop(self._entries.pop(name))
        for name, connector in wanted.items():
            entry = self._entries.setdefault(name, _Entry(connector))
            if entry.gateway is None and (entry.retry is None or entry.retry.is_due()):
                self._start(entry)

    def close(self) -> None:
        while self._entries:
            _stop(self._entries.popitem()[1])

    def _start(self, entry: _Entry) -> None:
        entry.retry = entry.retry or BackOff()
        try:
            gateway = Gateway(self._broker, [spec_of(entry.connector)], stop_timeout_s=STOP_S)
            gateway.start()
        except (PotokError, OSError) as error:
            if entry.error != str(error):
                _logger.warning("connector %s cannot start: %s", entry.connector.name, redact(str(error)))
            entry.error = str(error)
        else:
            entry.gateway, entry.error = gateway, ""


def spec_of(connector: Connector) -> ListenerSpec:
    """Return the listener of a connector. Raises `TopologyError`."""
    options = dict(connector.options)
    kind = options.pop("type", options.pop(_CLASS, None))
    if kind == GrowingFiles.kind:
        raise TopologyError("a server does not read files for its clients", hint="potok gateway does")
    hints = get_type_hints(KINDS[str(kind)]) if kind in KINDS else {}
    given: dict[str, Any] = {} if kind is None else {"type": kind}
    overload: dict[str, Any] = {}
    for name, value in options.items():
        group, dot, rest = name.partition(".")
        _check_secret(value)
        if dot and group == "overload":
            overload[rest] = _number(value) if rest in ("max_records", "max_bytes") else value
        else:
            given[name] = _value(value, hints.get(name))
    if overload:
        given["overload"] = overload
    return listener_of(connector.name, given)


def _value(value: object, hint: Any) -> Any:
    """Convert the value of a WITH clause to the type of an option."""
    if get_origin(hint) is tuple and isinstance(value, str):
        return [each.strip() for each in value.split(",")]
    if hint is bool and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return _number(value) if hint is int else value


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _check_secret(value: object) -> None:
    for each in str(value).split(","):
        text = each.strip().rpartition(": ")[2]
        if text.startswith("file:") or (text.startswith("env:") and not text.startswith(f"env:{SECRET_PREFIX}")):
            raise TopologyError(
                "a server does not read files or other environment variables for its clients",
                hint=f"write 'env:{SECRET_PREFIX}...', and set that variable where the server runs",
            )


def _kind_of(connector: Connector) -> str:
    return str(connector.options.get("type", connector.options.get(_CLASS, "")))


def _render(kind: str, options: Mapping[str, object]) -> dict[str, str]:
    """Return the options as text, without secrets."""
    hidden = {each.name for each in fields(KINDS[kind]) if not each.repr} if kind in KINDS else set(options)
    rendered = {}
    for name, value in options.items():
        rendered[name] = redact(str(value)) if name not in hidden or name == "url" else MASK
    return rendered


def _stop(entry: _Entry) -> None:
    if entry.gateway is not None:
        entry.gateway.stop()
