"""One process at a time runs a query."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from typing import TextIO

from potok.errors import QueryError

OTHER_NAME = 'stop that process first, or give this topology another name: StreamsBuilder("other-name")'


class QueryAlreadyRuns(QueryError):
    """A second process that wants to run the same query."""

    def __init__(self, query: str, holder: str, hint: str = OTHER_NAME) -> None:
        super().__init__(f'query "{query}" already runs{f" ({holder})" if holder else ""}', hint=hint)
        self.query, self.holder = query, holder


class QueryLock:
    """Held as long as the process lives, so that a crash leaves nothing to clean up."""

    def __init__(self, directory: Path, query: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = (directory / "lock").open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip()
            self._file.close()
            raise QueryAlreadyRuns(query, holder) from None
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        self._file.flush()

    def release(self) -> None:
        if not self._file.closed:
            self._file.truncate(0)
            self._file.close()


def is_held(directory: Path) -> bool:
    """Whether a query runs, told without touching its lock: whoever tries to take it keeps others from doing so. A
    process on another machine is believed to be there."""
    try:
        _, pid, _, host = (directory / "lock").read_text().split()
        if host == socket.gethostname():
            os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True
