"""Read listeners from a TOML file: one table for each, by name.

[payments]
type = "webhook"
listen = "127.0.0.1:8090"
topic = "payments"
overload = { max_records = 10_000, when_full = "reject" }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from potok.errors import TopologyError
from potok.sources.datagrams.statsd import Statsd
from potok.sources.datagrams.udp import Udp
from potok.sources.listener import ListenerSpec
from potok.sources.messages.mqtt import Mqtt
from potok.sources.messages.nng import Nng
from potok.sources.messages.rabbitmq import RabbitMq
from potok.sources.messages.zeromq import ZeroMq
from potok.sources.overload import Overload
from potok.sources.polling.growing_files import GrowingFiles
from potok.sources.polling.http_poll import HttpPoll
from potok.sources.source_tables import BadSourceFile, read_tables, suggestion
from potok.sources.tcp_lines import TcpLines
from potok.sources.webhooks.webhook import Webhook

KINDS: dict[str, type[ListenerSpec]] = {
    spec.kind: spec for spec in (Webhook, Udp, Statsd, RabbitMq, Mqtt, ZeroMq, Nng, TcpLines, GrowingFiles, HttpPoll)
}
"""The listeners by their `type`."""


class BadGatewayFile(BadSourceFile):
    """A file of listeners with a mistake."""


class GatewayFile(NamedTuple):
    """The log, if the file names one, and the listeners."""

    broker: str | None
    listeners: list[ListenerSpec]


def load_gateway(path: str | Path) -> GatewayFile:
    """Read a file of listeners, and check them."""
    path = Path(path)
    broker, listeners = read_tables(path, BadGatewayFile, listener_of)
    if not listeners:
        raise BadGatewayFile(path, "there is no listener", 'write a table such as [payments], with type = "webhook"')
    return GatewayFile(broker, listeners)


def listener_of(name: str, options: Mapping[str, Any]) -> ListenerSpec:
    """Return a listener by its options, which include its `type`."""
    given = dict(options)
    kind = given.pop("type", None)
    if kind not in KINDS:
        rendered = "no type" if kind is None else f"no type {kind!r} of listeners"
        raise TopologyError(f"there is {rendered}", hint=suggestion(str(kind), list(KINDS), "type = "))
    spec = KINDS[kind]
    hints = get_type_hints(spec)
    known = [each.name for each in fields(spec) if each.name != "name"]
    for option, value in given.items():
        if option not in known:
            raise TopologyError(f'a {kind} listener has no option "{option}"', hint=suggestion(option, known))
        given[option] = _value(option, value, hints[option])
    required = [each.name for each in fields(spec) if each.default is MISSING and each.name not in (*given, "name")]
    if required:
        hint = f"write {_spelling(required[0], hints[required[0]])}"
        raise TopologyError(f'a {kind} listener needs the option "{required[0]}"', hint=hint)
    listener = spec(name=name, **given)
    listener.check()
    return listener


def _value(option: str, value: Any, hint: Any) -> Any:
    """Check the type of an option; a list becomes a tuple, and a table the overload policy."""
    if hint is Overload:
        return _overload(value)
    if get_origin(hint) is tuple:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise TopologyError(f"{option} is not a list of texts", hint=f'write {option} = ["..."]')
        return tuple(value)
    if not _fits(value, hint):
        raise TopologyError(
            f"{option} = {value!r} does not have the right type", hint=f"write {_spelling(option, hint)}"
        )
    return value


def _fits(value: Any, hint: Any) -> bool:
    if isinstance(hint, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    return isinstance(value, hint) and not (isinstance(value, bool) and hint is not bool)


def _spelling(option: str, hint: Any) -> str:
    if get_origin(hint) is tuple:
        return f'{option} = ["..."]'
    if get_origin(hint) is Literal:
        return " or ".join(f'{option} = "{each}"' for each in get_args(hint))
    allowed = [each for each in (get_args(hint) or (hint,)) if each is not NoneType]
    if len(allowed) > 1:
        return f'{option} = "5 s"'
    if allowed[0] is bool:
        return f"{option} = true"
    return f'{option} = "..."' if allowed[0] is str else f"{option} = 1000"


def _overload(value: Any) -> Overload:
    known = [each.name for each in fields(Overload)]
    if not isinstance(value, Mapping):
        raise TopologyError("overload is not a table", hint='write overload = { when_full = "block" }')
    for option in value:
        if option not in known:
            raise TopologyError(f'overload has no option "{option}"', hint=suggestion(option, known))
    return Overload(**value)
