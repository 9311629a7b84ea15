"""The settings of an app as in Faust, and the methods that use them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from potok.faust.settings.app_settings import AppSettings
from potok.faust.settings.credentials import options_of
from potok.faust.settings.options import APP, left_out
from potok.faust.unsupported import Refused


class Conf(AppSettings):
    """The type of `app.conf`: the settings by name. One that was not given is None."""

    id: str
    name: str
    broker: str | None
    store: str | None

    def __init__(self, app: WithConf) -> None:
        object.__setattr__(self, "_app", app)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "store":
                return self._app.state
            if name in ("id", "broker", "name"):
                return getattr(self._app, name)
            if name not in APP:
                raise AttributeError(f"Faust has no setting {name!r}")
            return self._app.options.get(name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name in ("broker", "store"):
                self._app.choose(**{name: value})
            else:
                left_out(f'app "{self._app.id}"', {name: value}, APP)
                self._app.options[name] = value


class FlowControl:
    """The type of `app.flow_control`. Records are processed batch by batch, as fast as possible."""

    def is_active(self) -> bool:
        return True

    def resume(self) -> None:
        """Do nothing: processing was never suspended."""

    def suspend(self) -> None:
        raise Refused("App.flow_control.suspend", "stop the worker: it resumes where it stopped")

    def clear(self) -> None:
        """Do nothing: nothing is queued."""


class WithConf:
    """The part of an app that holds settings."""

    id: str
    options: dict[str, Any]

    @property
    def conf(self) -> Conf:
        return Conf(self)

    @property
    def start_at(self) -> Literal["earliest", "latest"]:
        """Return where a new app starts to read: at the first records of its topics, unless
        `consumer_auto_offset_reset` says otherwise.
        """
        return "latest" if self.options.get("consumer_auto_offset_reset") == "latest" else "earliest"

    @property
    def kafka(self) -> dict[str, str]:
        """Return the credentials for the Kafka client."""
        return options_of(self.options.get("broker_credentials"), self.options.get("ssl_context"))

    def config_from_object(self, given: Any, **_: Any) -> None:
        """Read settings from a mapping, a module or an object, given directly or by its name."""
        found = importlib.import_module(given) if isinstance(given, str) else given
        settings = found if isinstance(found, Mapping) else vars(found)
        for name, value in settings.items():
            if name in APP or name in ("broker", "store"):
                setattr(self.conf, name, value)

    def discover(self, *packages: str, **_: Any) -> None:
        """Import packages and their modules, so that their agents and tables are defined."""
        for package in packages or _packages(self.options.get("autodiscover"), self.options.get("origin")):
            module = importlib.import_module(package)
            for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{package}."):
                if not found.name.rpartition(".")[2].startswith("__"):
                    importlib.import_module(found.name)

    def finalize(self) -> None:
        """Do nothing: an app is complete when it is built."""

    finalized = configured = True
    flow_control = FlowControl()
    in_recovery = rebalancing = unassigned = False

    def is_leader(self) -> bool:
        """Return True: there is one worker, which leads."""
        return True


def _packages(asked: Any, origin: Any) -> Iterable[str]:
    if callable(asked):
        asked = asked()
    if asked is True:
        return [origin] if origin else []
    return [asked] if isinstance(asked, str) else asked or []


def versioned(id: str, version: Any) -> str:
    """Return the name of the query: another version of an app starts from scratch, next to the previous one."""
    return id if version in (None, 1) else f"{id}-v{version}"
