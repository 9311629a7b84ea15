"""Directories and files that only their owner can read, whatever the umask is."""

from __future__ import annotations

import os
from pathlib import Path

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600


def private_directory(path: Path) -> Path:
    """Make a directory, and those above it that are missing. One that is there keeps the mode that somebody gave it."""
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for directory in reversed(missing):
        directory.mkdir(DIRECTORY_MODE, exist_ok=True)
    return path


def private_opener(path: str, flags: int) -> int:
    """For `open(..., opener=private_opener)`: a file that is made by it."""
    return os.open(path, flags, FILE_MODE)


def write_private(path: Path, data: bytes) -> None:
    """Write a file that nobody else can have open, not even one who made it before."""
    path.unlink(missing_ok=True)
    with open(path, "xb", opener=private_opener) as file:
        file.write(data)
