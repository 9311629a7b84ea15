"""What the commands share: how one is declared, the options that many take, and the log that these name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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
        help="Where the log lives: file:./data, a directory, or kafka://HOST:PORT (POTOK_BROKER).",
    ),
]

Functions = Annotated[
    list[str] | None,
    typer.Option("--functions", metavar="FILE", help="A Python file or module whose @potok.function statements use."),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def command_app(**attributes: Any) -> typer.Typer:
    """The `app` of a command's module. Plain help texts: to draw them with rich takes twice as long as all the rest."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, **attributes)


@dataclass(frozen=True, slots=True)
class Globals:
    """What was given before the command's name."""

    broker: str | None = None


def broker_given(context: typer.Context, broker: str | None) -> str | None:
    """What the command line says, if it says something: behind the name of the command, or before."""
    return broker or (context.find_object(Globals) or Globals()).broker


def settings_of(context: typer.Context, broker: str | None = None, **given: Any) -> Settings:
    """The settings in force for a command; `broker` is what stood after its name, and so are others."""
    from potok.spark.worker_logs import set_log_level

    settings = Settings.load(broker=broker_given(context, broker), **given)
    set_log_level(settings.log_level)
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
    """The log in force. Whoever only looks leaves no directory behind where there is none."""
    from potok.backends.state_url import Where
    from potok.log.errors import TopicNotFound
    from potok.log.open import NoLogThere, log_exists, open_broker

    settings = settings_of(context, broker, state=state, kafka=kafka)
    url = settings.broker
    if settings.state:
        # A password may stand there, which whoever reads tables needs too.
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
