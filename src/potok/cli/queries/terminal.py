"""Keep a live panel intact: print the output of this process and its children above it, and do not echo keys."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from typing import TextIO

CHUNK = 65_536
OUTPUTS = (1, 2)
MARK = b"\0\x1bpotok\0"
"""Written by `drain` after all other output; no program prints it."""


class CapturedOutput:
    """Pass each line written to the terminal, also by child processes, to `print_line`.

    Works on file descriptors: Spark's processes inherit them and do not use `sys.stdout`. Output that is not a
    terminal, such as a file, is not captured.
    """

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print_line = print_line
        self._drained = threading.Event()
        self._ended = False

    def __enter__(self) -> CapturedOutput:
        self._saved = {output: os.dup(output) for output in OUTPUTS if os.isatty(output)}
        self._reader, self._writer = os.pipe()
        _flush()
        for output in self._saved:
            os.dup2(self._writer, output)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        _flush()
        for output, terminal in self._saved.items():
            os.dup2(terminal, output)
            os.close(terminal)
        self._ended = True
        os.write(self._writer, MARK)
        self._listener.join()
        # Spark's processes may outlive this: a failed write does not block them, a full pipe would.
        os.close(self._writer)
        os.close(self._reader)

    def drain(self) -> None:
        """Wait until all output written so far is printed."""
        _flush()
        self._drained.clear()
        os.write(self._writer, MARK)
        self._drained.wait()

    def _listen(self) -> None:
        rest = b""
        while True:
            *parts, rest = (rest + os.read(self._reader, CHUNK)).split(MARK)
            for part in parts:
                self._print(part)
                self._drained.set()
            if parts and self._ended:
                return
            whole, newline, rest = rest.rpartition(b"\n")
            if newline:
                self._print(whole + newline)

    def _print(self, lines: bytes) -> None:
        for line in lines.decode(errors="replace").splitlines():
            self._print_line(line)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError):  # closed
            stream.flush()


@contextlib.contextmanager
def terminal_stream() -> Iterator[TextIO]:
    """Duplicate standard output, so that redirecting its descriptor later has no effect."""
    with os.fdopen(os.dup(OUTPUTS[0]), "w", encoding=sys.stdout.encoding, errors="replace") as stream:
        yield stream


@contextlib.contextmanager
def silent_keys() -> Iterator[None]:
    """Turn off echo: a `^C` or a newline would move the cursor, and the panel would be drawn in another place."""
    try:
        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
    except (AttributeError, OSError, ValueError, termios.error):  # not a terminal, or none at all
        yield
        return
    silent = [*before]
    silent[3] &= ~(termios.ECHO | termios.ECHOCTL)
    termios.tcsetattr(keyboard, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
