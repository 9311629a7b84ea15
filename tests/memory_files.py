"""Temporary files in memory. Every commit of a log, of cells and of a ledger is synced, and on a disk the tests wait
for that more than half their time: 87 s instead of 16 s for 77 of them, measured on a busy machine. What they prove
stays the same: whoever is killed leaves the same files behind, on a disk and in memory.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

VARIABLE = "TMPDIR"
"""Where this process, and every one that it starts, puts what is temporary. Whoever sets it has chosen."""

MEMORY = Path("/dev/shm")
PREFIX = "potok-tests-"

ROOM = 2 << 30
"""All tests take half a gigabyte; a container's memory for files may be a few megabytes."""


def use() -> None:
    """Have temporary files in memory from here on, if this machine has room for them there."""
    if VARIABLE in os.environ or not _suits():
        return
    _remove_what_failed_runs_left()
    directory = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=MEMORY)
    # PostgreSQL is another user, and has its files there too.
    os.chmod(directory, 0o755)
    os.environ[VARIABLE] = tempfile.tempdir = directory


def remove() -> None:
    """Give the memory back. Not after a failure, which may name files that somebody wants to see."""
    directory = Path(os.environ.get(VARIABLE, ""))
    if _process_of(directory) == os.getpid():
        shutil.rmtree(directory, ignore_errors=True)


def _suits() -> bool:
    try:
        found = os.statvfs(MEMORY)
    except OSError:
        return False
    # A Java runtime may be unpacked there.
    can_run = not found.f_flag & os.ST_NOEXEC
    return can_run and os.access(MEMORY, os.W_OK) and found.f_bavail * found.f_frsize >= ROOM


def _remove_what_failed_runs_left() -> None:
    for directory in MEMORY.glob(f"{PREFIX}*"):
        process = _process_of(directory)
        if process and not Path(f"/proc/{process}").exists():
            shutil.rmtree(directory, ignore_errors=True)


def _process_of(directory: Path) -> int:
    """The process that made a directory, or 0 if that was none of ours."""
    number = directory.name.removeprefix(PREFIX).partition("-")[0]
    return int(number) if directory.name.startswith(PREFIX) and number.isdigit() else 0
