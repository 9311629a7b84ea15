"""Read a TOML file that names a log and declares one source in each table, by its name."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from potok.errors import SetupError, TopologyError

T = TypeVar("T")


class BadSourceFile(SetupError):
    """A file of sources with a mistake."""

    def __init__(self, path: Path, message: str, hint: str = "") -> None:
        super().__init__(f"{path}: {message}", hint=hint)


def read_tables(
    path: Path, wrong: type[BadSourceFile], source_of: Callable[[str, dict[str, Any]], T]
) -> tuple[str | None, list[T]]:
    """Return the log, if the file names one, and what `source_of` makes of the name and the options of each table."""
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise wrong(path, f"the file cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise wrong(path, f"the file is not TOML: {error}") from error
    broker = found.pop("broker", None)
    if broker is not None and not isinstance(broker, str):
        raise wrong(path, "broker is not text", 'write broker = "file:./data"')
    sources = []
    for name, options in found.items():
        if not isinstance(options, Mapping):
            text = f'[{name}] "{name}" is not a table of options'
            raise wrong(path, text, f"write [{name}] on a line of its own")
        try:
            sources.append(source_of(name, dict(options)))
        except TopologyError as error:
            raise wrong(path, f"[{name}] {error.message}", error.hint) from error
    return broker, sources


def suggestion(given: str, known: Sequence[str], prefix: str = "") -> str:
    """Return the hint for a name that is not known."""
    near = difflib.get_close_matches(given, known, n=1)
    return f'did you mean {prefix}"{near[0]}"?' if near else f"use one of {', '.join(known)}"
