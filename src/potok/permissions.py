"""Directories and files that only their owner can read, whatever the umask is."""

from __future__ import annotations

import os
from pathlib import Path

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600


def private_directory(path: Path) -> Path:
    """Create a directory and its missing parents. An existing directory keeps its mode."""
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for directory in reversed(missing):
        directory.mkdir(DIRECTORY_MODE, exist_ok=True)
    return path


def private_opener(path: str, flags: int) -> int:
    """Create files with a private mode: `open(..., opener=private_opener)`."""
    return os.open(path, flags, FILE_MODE)


def write_private(path: Path, data: bytes) -> None:
    """Write a new private file. An existing one, which others may have open, is removed first."""
    path.unlink(missing_ok=True)
    with open(path, "xb", opener=private_opener) as file:
        file.write(data)
