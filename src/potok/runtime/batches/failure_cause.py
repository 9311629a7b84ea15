"""Extract the cause of a failed batch, in one line, from Spark's output."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

from potok.errors import QueryError

_LONGEST = 500

_PLAN = "=== Streaming Query ==="
_WORKER_DIED = "Python worker exited unexpectedly"
WORKER_DIED = (
    "a Python worker of Spark died in every attempt of the task: it was killed, ran out of memory, or a library crashed"
)

_NETWORK = "Py4JNetworkError"
JVM_GONE = "Spark's JVM is gone: it was killed, or ran out of memory"

INTERNAL = "internal error in Potok"
_LOCATION = re.compile(r'File "([^"]+)", line (\d+)')
_OF_MACHINE = re.compile(
    r"(OSError|IOError|PermissionError|FileNotFoundError|FileExistsError|IsADirectoryError|NotADirectoryError"
    r"|BlockingIOError|InterruptedError|MemoryError|numpy\.\S*MemoryError|pyarrow\.lib\.ArrowMemoryError)\b"
)
"""Errors of the machine, such as a full disk, which no line of code explains."""
_LIBRARY = re.compile(r"/site-packages/|/lib/python3|^<frozen |\.p(xi|yx)$")
"""Lines of libraries: Cython names its files by its own paths."""
_POTOK = str(Path(__file__).parents[2]) + os.sep
_INSTALLED = "/site-packages/potok/"
"""The installed package, as on the workers of another machine."""

_JAVA = re.compile(r"(Caused by: )?:? ?(org|java|scala|py4j)\.")
_RAISED = re.compile(r"[\w.]*(Error|Exception)\b")
_FRAME = re.compile(r"at [\w.$]+\(|at [\w.$/]+\$?\(|\.\.\. \d+ more")


_OF_SPARK: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"OutOfMemoryError"),
        "Spark's JVM ran out of memory",
        'write driver_memory = "4g", for example, or a smaller max_batch_bytes in potok.toml',
    ),
    (
        re.compile(r"No space left on device"),
        "the disk that holds Spark's temporary files is full",
        "free some space, or name another directory: local.dir in [spark] of potok.toml",
    ),
    (
        re.compile(r"bigger than spark\.driver\.maxResultSize"),
        "the results of the batch exceed spark.driver.maxResultSize",
        "raise driver.maxResultSize in [spark] of potok.toml, or write a smaller max_batch_records",
    ),
    (
        re.compile(r"SparkContext was shut down|stopped SparkContext|cancelled because SparkContext"),
        "the Spark context was stopped while the batch was running",
        "the program stops it, or its cluster ended the application",
    ),
)
"""Errors of the JVM that have nothing to do with the records: pattern, cause and hint."""

_SPARK_CLASS = re.compile(r"(Caused by: )?org\.apache\.spark\.[\w.]*SparkException: ")


class QueryFailed(QueryError):
    """A batch that failed for an unexpected reason."""

    def __init__(self, query: str, cause: str) -> None:
        hint = "nothing of the batch is visible; start the query again to retry it"
        hint += next((f"; {remedy}" for _, known, remedy in _OF_SPARK if known == cause), "")
        if cause.startswith(INTERNAL):
            hint += ", and report this message if it fails again"
        super().__init__(f'query "{query}" failed: {cause}', hint=hint)


def described(error: BaseException) -> str:
    """Return an error with the line that raised it; an error of our own code is called internal."""
    what = f"{type(error).__name__}: {error}"[:_LONGEST]
    if is_internal(error) and not _OF_MACHINE.match(what):
        return f"{INTERNAL} ({code_location(error)}): {what}"
    frames = traceback.extract_tb(error.__traceback__)
    return f"{what} ({frames[-1].filename}:{frames[-1].lineno})" if frames else what


def cause_of(error: BaseException) -> str:
    """Return the line of a long message that names the cause: what Python raised in a task, else the first Java
    error."""
    if any(_is_lost_jvm(found) for found in _chain(error)):
        return JVM_GONE
    message = str(error).partition(_PLAN)[0]
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    lines = [line for line in lines if not _FRAME.match(line)]
    raised = [line for line in lines if _RAISED.match(line) and not _JAVA.match(line)]
    if raised:
        ours = "" if _OF_MACHINE.match(raised[-1]) else _internal(error, message)
        return (ours + raised[-1])[:_LONGEST]
    if any(_WORKER_DIED in line for line in lines):
        return WORKER_DIED
    for pattern, cause, _ in _OF_SPARK:
        if any(pattern.search(line) for line in lines):
            return cause
    java = [line for line in lines if _JAVA.match(line)]
    if java:
        return _SPARK_CLASS.sub("", java[0].removeprefix(": "), count=1)[:_LONGEST]
    return (lines[0] if lines else type(error).__name__)[:_LONGEST]


def _internal(error: BaseException, message: str) -> str:
    """Return a prefix for an internal error: one raised by our code, or by a package it called, and not by the
    user's."""
    frames = [(file, line) for file, line in _LOCATION.findall(message)] + _frames(error)
    return f"{INTERNAL} ({_location(frames)}): " if _raised_by_us([file for file, _ in frames]) else ""


def is_internal(error: BaseException) -> bool:
    """Whether an error was raised by our code, or by a package that it called."""
    return _raised_by_us([file for file, _ in _frames(error)])


def code_location(error: BaseException) -> str:
    """Return the innermost line of our code in the traceback."""
    return _location(_frames(error))


def _frames(error: BaseException) -> list[tuple[str, str]]:
    return [(frame.filename, str(frame.lineno)) for frame in traceback.extract_tb(error.__traceback__)]


def _is_ours(file: str) -> bool:
    return file.startswith(_POTOK) or _INSTALLED in file


def _raised_by_us(files: list[str]) -> bool:
    """Whether the innermost line outside libraries is ours: a user's function may call libraries too."""
    for file in reversed(files):
        if _is_ours(file):
            return True
        if not _LIBRARY.search(file):
            return False
    return False


def _location(frames: list[tuple[str, str]]) -> str:
    ours = [(file.rpartition("/potok/")[2], line) for file, line in frames if _is_ours(file)]
    return f"potok/{ours[-1][0]}, line {ours[-1][1]}" if ours else ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _is_lost_jvm(error: BaseException) -> bool:
    """Whether Py4J has lost its connection; connections of other libraries do not count."""
    if type(error).__name__ == _NETWORK:
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_in = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return isinstance(error, ConnectionError) and raised_in.startswith("py4j.")
