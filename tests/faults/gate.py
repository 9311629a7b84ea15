"""What a task meets in the middle of a batch, so that the fault happens there and not at some other time."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT_S = 240.0
_LOOK_S = 0.01


@dataclass(frozen=True, slots=True)
class Gate:
    """Holds the task that comes to record `number`, which is known by its fields, until it is let go, or dies.

    It holds one task, once: a batch that is tried again passes.
    """

    directory: str
    number: int
    fields: Mapping[str, Any]

    def __call__(self, value: Any) -> None:
        if any(value[name] != wanted for name, wanted in self.fields.items()):
            return
        try:
            descriptor = os.open(self._reached, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return
        os.write(descriptor, str(os.getpid()).encode())
        os.close(descriptor)
        end = time.monotonic() + TIMEOUT_S
        while not self._go.exists():
            if time.monotonic() > end:
                raise TimeoutError("nobody let this record go")
            time.sleep(_LOOK_S)

    @property
    def _reached(self) -> Path:
        return Path(self.directory) / "reached"

    @property
    def _go(self) -> Path:
        return Path(self.directory) / "go"

    @property
    def reported(self) -> list[Any]:
        """What a program gets, so that it makes the same."""
        return ["gate", self.directory, self.number, dict(self.fields)]

    def holder(self) -> int | None:
        """The process that waits; None as long as none does."""
        try:
            return int(self._reached.read_text())
        except (FileNotFoundError, ValueError):
            return None

    def let_go(self) -> None:
        self._go.touch()


@dataclass(frozen=True, slots=True)
class Stumble:
    """Ends the process that comes to a record, so many times: the task is tried again, and comes to it again."""

    directory: str
    number: int
    fields: Mapping[str, Any]
    times: int

    def __call__(self, value: Any) -> None:
        if any(value[name] != wanted for name, wanted in self.fields.items()):
            return
        for number in range(self.times):
            try:
                os.close(os.open(Path(self.directory) / str(number), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os._exit(1)

    @property
    def reported(self) -> list[Any]:
        return ["stumble", self.directory, self.number, dict(self.fields), self.times]

    def stumbled(self) -> int:
        return len(list(Path(self.directory).iterdir()))


def watch_of(reported: list[Any] | None) -> Gate | Stumble | None:
    """How a program was asked to watch its records."""
    if reported is None:
        return None
    kind, *rest = reported
    return Gate(*rest) if kind == "gate" else Stumble(*rest)
