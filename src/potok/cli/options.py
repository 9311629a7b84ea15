"""What the commands share: how one is declared, the options that many take, and the log that these name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.settings import Settings

if TYPE_CHECKING:
    from potok.log.broker import Broker as Log

Broker = Annotated[
    str | None,
    typer.Option("--broker", metavar="URL", help="Where the log lives: file:./data, or a directory (POTOK_BROKER)."),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def command_app(**attributes: Any) -> typer.Typer:
    """The `app` of a command's module. Plain help texts: to draw them with rich takes twice as long as all the rest."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, **attributes)


@dataclass(frozen=True, slots=True)
class Globals:
    """What was given before the command's name."""

    broker: str | None = None


def settings_of(context: typer.Context, broker: str | None = None) -> Settings:
    """The settings in force for a command; `broker` is what stood after its name."""
    given = context.find_object(Globals) or Globals()
    return Settings.load(broker=broker or given.broker)


@contextmanager
def opened_log(context: typer.Context, broker: str | None) -> Iterator[Log]:
    from potok.log.open import open_broker

    log = open_broker(settings_of(context, broker).broker)
    try:
        yield log
    finally:
        log.close()
