"""Reading in a process of its own: what damaged files can do to a process, they do to that one."""

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
"""A reader that says nothing for so long is taken to hang."""


class ReaderDied(PotokError):
    """The process that read a file did not come to its end."""

    def __init__(self, how: str) -> None:
        super().__init__(
            f"the process that read it {how}",
            hint="the file is damaged in a way that no check has found: restore it from a backup, and report this",
        )


def isolated(work: Callable[[], Iterator[Any]], *, quiet_s: float = QUIET_S) -> Iterator[Any]:
    """Give what `work` yields in a child process: values of JSON; None only shows that it is at work.

    An error of Potok is raised here as there. `ReaderDied` says that the child was killed by a signal, or hung.
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
        for said in _lines(reading, quiet_s):
            if "error" in said:
                raise _rebuilt(*said["error"])
            if said["value"] is not None:
                yield said["value"]
        ended = True
    finally:
        os.close(reading)
        if not ended:
            # It hangs, or nobody wants the rest: it only reads.
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise ReaderDied(f"was killed by {signal.Signals(os.WTERMSIG(status)).name}")


def _lines(reading: int, quiet_s: float) -> Iterator[dict[str, Any]]:
    rest = b""
    # Not `select`, which takes no descriptor beyond 1,023.
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
    """Never returns: what the parent has open and registered is not for this process to end."""
    code = 0
    faulthandler.disable()
    try:
        for value in work():
            _write(writing, {"value": value})
    except PotokError as error:
        kind = type(error)
        _write(writing, {"error": [kind.__module__, kind.__qualname__, error.message, error.hint]})
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must be told
        traceback.print_exc()
        told = ReaderDied(f"failed: {type(error).__name__}: {error}")
        _write(writing, {"error": [__name__, ReaderDied.__qualname__, told.message, told.hint]})
        code = 1
    finally:
        os._exit(code)


def _write(writing: int, said: dict[str, Any]) -> None:
    data = memoryview(orjson.dumps(said) + b"\n")
    while data:
        data = data[os.write(writing, data) :]


def _rebuilt(module: str, name: str, message: str, hint: str) -> PotokError:
    found = getattr(importlib.import_module(module), name, PotokError)
    kind = found if isinstance(found, type) and issubclass(found, PotokError) else PotokError
    error = kind.__new__(kind)
    PotokError.__init__(error, message, hint=hint)
    return error
