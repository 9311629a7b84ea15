"""Scripts as files."""

from __future__ import annotations

from pathlib import Path

from potok.errors import SetupError


class NoScript(SetupError):
    """A file that cannot be read."""


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise NoScript(f"{path} cannot be read: {why}", hint="name a file that holds statements") from error
