"""Convert unexpected exceptions of a command to errors with a message."""

from __future__ import annotations

import errno

from potok.errors import PotokError, QueryError, SetupError
from potok.machine import MachineError, is_of_machine
from potok.runtime.batches.failure_cause import INTERNAL, code_location, is_internal


class InternalError(QueryError):
    """An unexpected exception inside Potok."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"{INTERNAL} ({code_location(error)}): {type(error).__name__}: {error}"[:500],
            hint="this is a bug in Potok: report this message with the command",
        )


class NotText(SetupError):
    """A command-line argument is not UTF-8."""

    def __init__(self, error: UnicodeEncodeError) -> None:
        super().__init__(
            f"{error.object!r} is not text: it has bytes that are not UTF-8"[:500], hint="type it in UTF-8 (locale -a)"
        )


def unexpected(error: Exception) -> PotokError | None:
    """Return the error to print for an unexpected exception; None if the user's program raised it."""
    if not is_internal(error):
        return None
    if isinstance(error, OSError | MemoryError) and is_of_machine(error):
        return MachineError("the command was running", error)
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):
        return MachineError("the command was running", OSError(errno.ELOOP, str(error)))
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return NotText(error)
    return InternalError(error)
