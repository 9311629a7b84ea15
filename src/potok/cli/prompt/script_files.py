"""Read script files."""

from __future__ import annotations

from pathlib import Path

from potok.errors import SetupError


class NoScript(SetupError):
    """The file cannot be read."""


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise NoScript(f"cannot read {path}: {why}", hint="name a file that contains SQL statements") from error
