"""A lock that lets one process at a time run a query."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path
from typing import TextIO

from potok.errors import QueryError
from potok.permissions import private_directory, private_opener

_LOOKS = 3
_LOOK_S = 0.02
"""A process that checks whether a query runs holds its lock for an instant; this does not count as running it."""

_WORDS = 4
"""`process PID on HOST`"""

OTHER_NAME = 'stop that process first, or give this one another name: StreamsBuilder("other-name"), App("other-name")'


class QueryAlreadyRuns(QueryError):
    """A second process that tries to run the same query."""

    def __init__(self, query: str, holder: str, hint: str = OTHER_NAME) -> None:
        super().__init__(f'query "{query}" is already running{f" ({holder})" if holder else ""}', hint=hint)
        self.query, self.holder = query, holder


class QueryTakenOver(QueryError):
    """This process was paused or disconnected, and another one has started to run the query."""

    exit_code = 3

    def __init__(self, query: str, holder: str) -> None:
        super().__init__(
            f'query "{query}" was taken over by {holder or "another process"}, so this process has stopped',
            hint="nothing is lost and nothing is written twice; stop that process first to run the query here",
        )


def this_process() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


class QueryLock:
    """A lock held as long as the process lives, so that a crash leaves nothing to clean up."""

    def __init__(self, directory: Path, query: str) -> None:
        private_directory(directory)
        self._file: TextIO = open(directory / "lock", "a+", opener=private_opener)  # noqa: SIM115 - held until the end
        if not self._taken():
            self._file.seek(0)
            holder = self._file.read().strip()
            self._file.close()
            raise QueryAlreadyRuns(query, holder) from None
        self._file.truncate(0)
        self._file.write(this_process() + "\n")
        self._file.flush()

    def _taken(self) -> bool:
        for look in range(_LOOKS):
            if look:
                time.sleep(_LOOK_S)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            return True
        return False

    def release(self) -> None:
        if not self._file.closed:
            self._file.truncate(0)
            self._file.close()


def is_held(directory: Path) -> bool:
    """Whether a query runs. The content of the file counts only for a process on another machine: a killed one leaves
    it behind, and its process id may belong to another process.
    """
    try:
        with (directory / "lock").open() as file:
            words = file.read().split()
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return len(words) == _WORDS and words[-1] != socket.gethostname()
