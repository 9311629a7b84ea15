"""Settings of an app as Faust has them: what was given, what it means here, and what means nothing."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from potok.faust.settings.credentials import options_of
from potok.faust.settings.options import APP, left_out
from potok.faust.unsupported import Refused, refuse


class Conf:
    """What `app.conf` is: the settings by name. One that was not given is None."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __getattr__(self, name: str) -> Any:
        if name == "store":
            return self._app.state
        if name in ("id", "broker", "name"):
            return getattr(self._app, name)
        if name not in APP:
            raise AttributeError(f"Faust has no setting {name!r}")
        return self._app.options.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        elif name in ("broker", "store"):
            self._app.choose(**{name: value})
        else:
            left_out(f'app "{self._app.id}"', {name: value}, APP)
            self._app.options[name] = value


class FlowControl:
    """What `app.flow_control` is. Records flow batch by batch, as fast as they are dealt with."""

    def is_active(self) -> bool:
        return True

    def resume(self) -> None:
        """For those who call it; nothing was held back."""

    def suspend(self) -> None:
        raise Refused("App.flow_control.suspend", "stop the worker: it goes on where it stopped")

    def clear(self) -> None:
        """For those who call it; nothing is queued."""


class WithConf:
    """What an app has of settings."""

    id: str
    options: dict[str, Any]

    @property
    def conf(self) -> Conf:
        return Conf(self)

    @property
    def begin(self) -> Literal["earliest", "latest"]:
        """Where an app begins that never ran: with the first records of its topics, unless
        `consumer_auto_offset_reset` says otherwise."""
        return "latest" if self.options.get("consumer_auto_offset_reset") == "latest" else "earliest"

    @property
    def kafka(self) -> dict[str, str]:
        """What Kafka's client is told of who the app is."""
        return options_of(self.options.get("broker_credentials"), self.options.get("ssl_context"))

    def config_from_object(self, given: Any, **_: Any) -> None:
        """Take settings from a mapping, a module or an object, given itself or by its name."""
        found = importlib.import_module(given) if isinstance(given, str) else given
        settings = found if isinstance(found, Mapping) else vars(found)
        for name, value in settings.items():
            if name in APP or name in ("broker", "store"):
                setattr(self.conf, name, value)

    def discover(self, *packages: str, **_: Any) -> None:
        """Import packages and all that is in them, so that their agents and tables are known."""
        for package in packages or _packages(self.options.get("autodiscover"), self.options.get("origin")):
            module = importlib.import_module(package)
            for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{package}."):
                if not found.name.rpartition(".")[2].startswith("__"):
                    importlib.import_module(found.name)

    def finalize(self) -> None:
        """For those who call it; an app is complete when it is built."""

    finalized = configured = True
    flow_control = FlowControl()
    in_recovery = rebalancing = unassigned = False

    def is_leader(self) -> bool:
        """There is one worker, which leads."""
        return True

    def __getattr__(self, name: str) -> Any:
        return refuse("App", name)


def _packages(asked: Any, origin: Any) -> Iterable[str]:
    if callable(asked):
        asked = asked()
    if asked is True:
        return [origin] if origin else []
    return [asked] if isinstance(asked, str) else asked or []


def versioned(id: str, version: Any) -> str:
    """The name of the query: another version of an app begins anew, beside the one before."""
    return id if version in (None, 1) else f"{id}-v{version}"
