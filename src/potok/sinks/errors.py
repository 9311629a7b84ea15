"""Errors of sinks.

SinkError
├── DeliveryFailed    a sink did not accept a batch, after retries
├── SinkAhead         a sink has seen later batches than the query has committed
├── SinkTaken         another step, or another epoch of the query, delivers there
└── SinkMisfit        an existing table or directory does not fit the records
"""

from __future__ import annotations

import errno
from collections.abc import Mapping

from potok.errors import SinkError

MOST_REFUSED = 1_000
"""If more records of a batch are rejected, the cause is not the records."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
_AWAY = {errno.ENOENT, errno.EIO, errno.EREMOTEIO, errno.EROFS, errno.ESTALE, errno.ENODEV, errno.ENXIO}
_CUT_OFF = {
    errno.ENOTCONN,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.ECONNABORTED,
    errno.ETIMEDOUT,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.ENETDOWN,
    errno.ENETUNREACH,
    errno.ESHUTDOWN,
}
_BUSY = {errno.EAGAIN, errno.EBUSY, errno.EINTR}


def may_pass(error: OSError) -> bool:
    """Return whether a retry may succeed: the disk is full, busy or not mounted, or the network does not reach it.

    A file in the way or a missing permission is permanent.
    """
    return error.errno in _FULL | _AWAY | _CUT_OFF | _BUSY


def too_many_refused(failures: Mapping[int, str]) -> str | None:
    """Return why a batch is rejected as a whole, if so many of its records are; otherwise None."""
    if len(failures) <= MOST_REFUSED:
        return None
    return f"it rejected more than {MOST_REFUSED:,} records, the first with: {failures[min(failures)]}"


class DeliveryFailed(SinkError):
    """A batch that a sink did not accept."""

    def __init__(
        self,
        step: str,
        label: str,
        batch: int,
        cause: str,
        *,
        lost: bool = False,
        passing: bool = False,
        remedy: str | None = None,
    ) -> None:
        self.passing = passing and not lost
        hint = "nothing was skipped: restart the query to deliver the batch again"
        if lost:
            hint = (
                "the sink is at_most_once, so its records of this batch are not sent again; "
                'use guarantee="at_least_once" to repeat them'
            )
        if remedy:
            hint = f"{remedy}; {hint}"
        super().__init__(f'sink "{step}" ({label}) rejected batch {batch}: {cause}', hint=hint)


class SinkAhead(SinkError):
    """The query was started over or restored, but the sink has later batches."""

    def __init__(self, step: str, label: str, seen: int, committed: int, remedy: str) -> None:
        super().__init__(
            f'sink "{step}" ({label}) has seen batch {seen}, but the query has committed {committed} only: '
            "it was started over, or another query of this name writes to it",
            hint=remedy,
        )


class SinkTaken(SinkError):
    """Another step or query delivers to this sink."""

    def __init__(self, step: str, label: str, owner: str, remedy: str) -> None:
        super().__init__(f'sink "{step}" cannot deliver to {label}: {owner} delivers there', hint=remedy)


class SinkMisfit(SinkError):
    """An existing table or directory does not fit the records."""

    def __init__(self, step: str, label: str, cause: str, hint: str) -> None:
        super().__init__(f'sink "{step}" does not fit {label}: {cause}', hint=hint)
