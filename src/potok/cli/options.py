"""What commands share: their declaration, common options, and opening the log."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.settings import Settings

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log

Broker = Annotated[
    str | None,
    typer.Option(
        "--broker",
        metavar="URL",
        help="The log: file:./data, a directory, or kafka://HOST:PORT (POTOK_BROKER).",
    ),
]

Functions = Annotated[
    list[str] | None,
    typer.Option(
        "--functions", metavar="FILE", help="A Python file or module that defines SQL functions with @potok.function."
    ),
]

Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics", metavar="[HOST:]PORT", help="Serve /metrics, /livez and /readyz there; 0 for any free port."
    ),
]

TlsCert = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert", metavar="FILE", help="Serve HTTPS with this certificate (PEM); read again when it is renewed."
    ),
]

TlsKey = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="The private key of --tls-cert (PEM).")]

AllowedHost = Annotated[
    list[str] | None,
    typer.Option("--allowed-host", metavar="NAME", help="Name by which clients call this server; others are rejected."),
]

AuditLog = Annotated[
    Path | None,
    typer.Option("--audit-log", metavar="FILE", help="Append one line of JSON there for each change by a client."),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def command_app(**attributes: Any) -> typer.Typer:
    """Create the `app` of a command's module. Help is plain text: rendering it with rich doubles the start-up time."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, **attributes)


@dataclass(slots=True)
class Globals:
    """Options given before the name of the command, or shared by many."""

    broker: str | None = None
    log_format: str | None = None


def _choose_log_format(context: typer.Context, value: str | None) -> str | None:
    if value is not None:
        context.ensure_object(Globals).log_format = value
    return value


LogFormat = Annotated[
    str | None,
    typer.Option(
        "--log-format",
        metavar="FORMAT",
        callback=_choose_log_format,
        expose_value=True,
        help="How logs are written to stderr: text, or json with query, batch and step (POTOK_LOG_FORMAT).",
    ),
]


def broker_given(context: typer.Context, broker: str | None) -> str | None:
    """Return the broker given after the name of the command, or before it; None if there is none."""
    return broker or (context.find_object(Globals) or Globals()).broker


def settings_of(context: typer.Context, broker: str | None = None, **given: Any) -> Settings:
    """Return the settings of a command; `broker` and `others` are its own options."""
    from potok.spark.worker_logs import set_up_logs

    log_format = (context.find_object(Globals) or Globals()).log_format
    settings = Settings.load(broker=broker_given(context, broker), log_format=log_format, **given)
    set_up_logs(settings.log_level, settings.log_format)
    return settings


@contextmanager
def opened_log(
    context: typer.Context,
    broker: str | None,
    *,
    create: bool = False,
    state: str | None = None,
    kafka: Mapping[str, str] | None = None,
) -> Iterator[Log]:
    """Open the log of a command. Commands that only read do not create a directory."""
    from potok.backends.state_url import Where
    from potok.log.errors import TopicNotFound
    from potok.log.open import NoLogThere, log_exists, open_broker

    settings = settings_of(context, broker, state=state, kafka=kafka)
    url = settings.broker
    if settings.state:
        # The URL may contain a password, which reading tables needs too.
        Where.of(settings.state)
    if not create and not log_exists(url):
        raise NoLogThere(url)
    log = open_broker(url, settings)
    try:
        yield log
    except TopicNotFound as error:
        near = difflib.get_close_matches(error.topic, log.topics(), n=1, cutoff=0.75)
        if near and near[0] != error.topic:
            error.hint = f'did you mean "{near[0]}"? or {error.hint}'
        raise
    finally:
        log.close()
