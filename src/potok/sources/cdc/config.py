"""Read captures from a TOML file: one table for each, by name.

[shop]
url = "env:SHOP_URL"
tables = ["users", "orders"]
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from potok.errors import TopologyError
from potok.sources.source_tables import BadSourceFile, read_tables, suggestion
from potok.topology.capture import Capture

_ENVIRONMENT = "env:"


class BadCaptureFile(BadSourceFile):
    """A file of captures with a mistake."""


class CaptureFile(NamedTuple):
    """The log, if the file names one, and the captures."""

    broker: str | None
    captures: list[Capture]


def load_captures(path: str | Path) -> CaptureFile:
    """Read a file of captures, and check them."""
    path = Path(path)
    broker, captures = read_tables(path, BadCaptureFile, capture_of)
    if not captures:
        raise BadCaptureFile(path, "there is no capture", 'write a table such as [shop], with url = "postgresql://..."')
    return CaptureFile(broker, captures)


def capture_of(name: str, options: Mapping[str, Any]) -> Capture:
    """Return a capture by its options."""
    given: dict[str, Any] = dict(options)
    known = [field.name for field in fields(Capture) if field.name != "name"]
    for option in given:
        if option not in known:
            raise TopologyError(f'a capture has no option "{option}"', hint=suggestion(option, known))
    for option in ("url", "tables"):
        if option not in given:
            example = 'url = "postgresql://user@host/shop"' if option == "url" else 'tables = ["users"]'
            raise TopologyError(f'a capture needs the option "{option}"', hint=f"write {example}")
    tables = given.pop("tables")
    if not isinstance(tables, list) or not all(isinstance(each, str) for each in tables):
        raise TopologyError("tables is not a list of names", hint='write tables = ["users", "orders"]')
    given["url"] = _url(given["url"])
    for field in fields(Capture):
        _check_type(field.name, given.get(field.name), field.default)
    return Capture(name=name, tables=tuple(tables), **given)


def _check_type(option: str, value: Any, default: Any) -> None:
    """Raise for a value whose type differs from that of the default; a duration may be text or a number."""
    if value is None or option in ("url", "name", "tables", "heartbeat"):
        return
    if type(value) is not type(default):
        raise TopologyError(f"{option} = {value!r} does not have the right type", hint=f"write {option} = {default!r}")


def _url(value: Any) -> str:
    if not isinstance(value, str):
        raise TopologyError("url is not text", hint='write url = "postgresql://user@host/shop"')
    if not value.startswith(_ENVIRONMENT):
        return value
    name = value.removeprefix(_ENVIRONMENT)
    if name not in os.environ:
        raise TopologyError(f"the environment variable {name} is not set", hint=f"export {name}=postgresql://...")
    return os.environ[name]
