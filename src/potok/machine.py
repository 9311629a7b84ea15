"""Errors of the operating system: files that cannot be opened, full disks, missing memory."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from potok.errors import SetupError

_HINTS: dict[int, str] = {
    errno.EACCES: "run it as the user who owns the file, or name another directory",
    errno.EPERM: "run it as the user who owns the file, or name another directory",
    errno.EROFS: "name a directory on a writable file system",
    errno.ENOSPC: "free some space on that file system, and try again",
    errno.EDQUOT: "free some space, or raise the quota, and try again",
    errno.EFBIG: "raise the limit of the size of files (ulimit -f), and try again",
    errno.EMFILE: "raise the limit of open files of a process (ulimit -n 65536), and try again",
    errno.ENFILE: "the machine has too many open files: stop a process, or raise fs.file-max",
    errno.ENOMEM: "give the process more memory, or lower max_batch_bytes=",
    errno.EISDIR: "name a file, not a directory",
    errno.ENOTDIR: "part of the path is a file: name another directory",
    errno.ENOENT: "check whether another process removed it, and check the spelling of the path",
    errno.EEXIST: "a file or directory exists there: name another path",
    errno.ENAMETOOLONG: "use a shorter name, or a directory with a shorter path",
    errno.ELOOP: "the links form a cycle: name another path",
    errno.EIO: "the disk has errors: check the kernel log, and restore the damaged files from a backup",
}
_OTHER_HINT = "check the file system and its permissions, and try again"
_MEMORY_HINT = "give the process more memory, or lower max_batch_records= and max_batch_bytes="


class MachineError(SetupError):
    """The operating system refused an operation: permissions, disk space, open files, memory."""

    def __init__(self, doing: str, error: OSError | MemoryError) -> None:
        if isinstance(error, MemoryError):
            super().__init__(f"out of memory while {doing}", hint=_MEMORY_HINT)
        else:
            named = f": {error.filename}" if error.filename else ""
            hint = _HINTS.get(error.errno or 0, _OTHER_HINT)
            super().__init__(
                f"the operating system refused a file while {doing}: {error.strerror or error}{named}", hint=hint
            )


def is_of_machine(error: BaseException) -> bool:
    """Whether an error comes from the operating system. Connection errors are reported by the code that opened the
    connection.
    """
    return isinstance(error, OSError | MemoryError) and not isinstance(error, ConnectionError | TimeoutError)


def usable_path(path: str | Path, what: str) -> Path:
    """Return an absolute path, with links and `~` resolved. Raises `SetupError` if there is no such home directory, or
    if links lead in a circle.
    """
    try:
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise SetupError(f'{what} "{path}" cannot be used: {error}', hint="name another path, or set HOME") from error


@contextmanager
def naming_machine(doing: str) -> Iterator[None]:
    """Raise `MachineError` for errors of the operating system; `doing` names the operation, as in "reading the log
    at DIRECTORY".
    """
    try:
        yield
    except (OSError, MemoryError) as error:
        if not is_of_machine(error):
            raise
        raise MachineError(doing, error) from error
