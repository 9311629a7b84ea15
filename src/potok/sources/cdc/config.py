"""Read captures from a TOML file: one table for each, by name.

[shop]
url = "env:SHOP_URL"
tables = ["users", "orders"]
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from potok.errors import SetupError, TopologyError
from potok.topology.capture import Capture

_ENVIRONMENT = "env:"


class BadCaptureFile(SetupError):
    """A file of captures with a mistake."""

    def __init__(self, path: Path, message: str, hint: str = "") -> None:
        super().__init__(f"{path}: {message}", hint=hint)


class CaptureFile(NamedTuple):
    """The log, if the file names one, and the captures."""

    broker: str | None
    captures: list[Capture]


def load_captures(path: str | Path) -> CaptureFile:
    """Read a file of captures, and check them."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise BadCaptureFile(path, f"the file cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadCaptureFile(path, f"the file is not TOML: {error}") from error
    broker = found.pop("broker", None)
    if broker is not None and not isinstance(broker, str):
        raise BadCaptureFile(path, "broker is not text", 'write broker = "file:./data"')
    made = []
    for name, options in found.items():
        try:
            made.append(capture_of(name, options))
        except TopologyError as error:
            raise BadCaptureFile(path, f"[{name}] {error.message}", error.hint) from error
    if not made:
        raise BadCaptureFile(path, "there is no capture", 'write a table such as [shop], with url = "postgresql://..."')
    return CaptureFile(broker, made)


def capture_of(name: str, options: object) -> Capture:
    """Return a capture by its options."""
    if not isinstance(options, Mapping):
        raise TopologyError(f'"{name}" is not a table of options', hint=f"write [{name}] on a line of its own")
    given: dict[str, Any] = dict(options)
    known = [field.name for field in fields(Capture) if field.name != "name"]
    for option in given:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=1)
            hint = f'did you mean "{near[0]}"?' if near else f"use one of {', '.join(known)}"
            raise TopologyError(f'a capture has no option "{option}"', hint=hint)
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
