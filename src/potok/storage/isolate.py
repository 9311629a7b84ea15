"""Read files in a child process, which damaged ones may crash."""

from __future__ import annotations

import faulthandler
import importlib
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from potok.errors import PotokError

QUIET_S = 300.0
"""A reader that is silent for this long is considered hung."""


class ReaderDied(PotokError):
    """The process that read a file was killed, hung or failed."""

    def __init__(self, how: str) -> None:
        super().__init__(
            f"the process that read it {how}",
            hint="the file is damaged in a way that no check detected: restore it from a backup, and report this",
        )


def isolated(work: Callable[[], Iterator[Any]], *, quiet_s: float = QUIET_S) -> Iterator[Any]:
    """Yield what `work` yields in a child process: JSON values; None is only a progress report.

    A `PotokError` of the child is raised here. `ReaderDied` means that the child was killed by a signal, or hung.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _answer(work, writing)
    os.close(writing)
    ended = False
    try:
        for message in _lines(reading, quiet_s):
            if "error" in message:
                raise _rebuilt(*message["error"])
            if message["value"] is not None:
                yield message["value"]
        ended = True
    finally:
        os.close(reading)
        if not ended:
            # It hangs, or the rest is not needed. Killing it is safe: it only reads.
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise ReaderDied(f"was killed by {signal.Signals(os.WTERMSIG(status)).name}")


def _lines(reading: int, quiet_s: float) -> Iterator[dict[str, Any]]:
    rest = b""
    # Not `select`, which fails for descriptors above 1,023.
    waiting = select.poll()
    waiting.register(reading, select.POLLIN)
    while waiting.poll(quiet_s * 1000):
        part = os.read(reading, 1 << 16)
        if not part:
            return
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield orjson.loads(line)
    raise ReaderDied(f"did nothing for {quiet_s:.0f} s")


def _answer(work: Callable[[], Iterator[Any]], writing: int) -> None:
    """Run `work` and exit without cleanup: open resources and exit handlers belong to the parent."""
    code = 0
    faulthandler.disable()
    try:
        for value in work():
            _write(writing, {"value": value})
    except PotokError as error:
        kind = type(error)
        _write(writing, {"error": [kind.__module__, kind.__qualname__, error.message, error.hint]})
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must be error_line
        traceback.print_exc()
        error_line = ReaderDied(f"failed: {type(error).__name__}: {error}")
        _write(writing, {"error": [__name__, ReaderDied.__qualname__, error_line.message, error_line.hint]})
        code = 1
    finally:
        os._exit(code)


def _write(writing: int, message: dict[str, Any]) -> None:
    data = memoryview(orjson.dumps(message) + b"\n")
    while data:
        data = data[os.write(writing, data) :]


def _rebuilt(module: str, name: str, message: str, hint: str) -> PotokError:
    found = getattr(importlib.import_module(module), name, PotokError)
    kind = found if isinstance(found, type) and issubclass(found, PotokError) else PotokError
    error = kind.__new__(kind)
    PotokError.__init__(error, message, hint=hint)
    return error
